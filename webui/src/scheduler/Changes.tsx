// How the plan changed: which camera went from where to where, and why; the newest first.

import styles from './Changes.module.css'

import { Reason } from '../figures/Reason'
import { clockTime, frameRate, rate } from '../ui/format'
import type { PlanChange, AdvisedSize } from './timeline'

const SHOWN = 30

export function Changes({ changes, offset_ms }: { changes: readonly PlanChange[]; offset_ms: number }) {
  const latest = changes.slice(-SHOWN).reverse()
  return (
    <section class={`${styles.changes} card`} aria-labelledby="changes-title" data-testid="changes">
      <h2 id="changes-title">How it changed</h2>
      {latest.length === 0 && <p class="muted">Nothing has changed in the last 24 hours, or since the box started.</p>}
      {latest.length > 0 && (
        <ol tabIndex={0} aria-labelledby="changes-title">
          {latest.map((change) => (
            <li key={`${change.at_ms} ${change.camera}`}>
              <time dateTime={new Date(change.at_ms + offset_ms).toISOString()}>{clockTime(change.at_ms + offset_ms)}</time>
              <p>
                <strong>{change.camera}</strong> {step(change)}
                <br />
                <span class="muted"><Reason text={change.reason} /></span>
              </p>
            </li>
          ))}
        </ol>
      )}
    </section>
  )
}

/** What is different: "street-320 → street-256", "10 → 5 frames/s". */
export function step({ before, after }: PlanChange): string {
  if (!before) return `begins with ${after.variant} at ${frameRate(after.rate_hz)}`
  const parts: string[] = []
  if (before.variant !== after.variant) parts.push(`${before.variant} → ${after.variant}`)
  else if (sizeOf(before) !== sizeOf(after)) parts.push(`${sizeOf(before)} → ${sizeOf(after)}`)
  if (before.rate_hz !== after.rate_hz) parts.push(`${rate(before.rate_hz)} → ${frameRate(after.rate_hz)}`)
  return parts.join(', ')
}

function sizeOf({ width_px, height_px }: AdvisedSize): string {
  return `${width_px} × ${height_px} px`
}

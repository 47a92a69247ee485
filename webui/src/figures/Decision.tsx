// What the box decided for a camera, and why.

import styles from './Decision.module.css'

import { frameRate } from '../ui/format'
import type { Camera } from '../api/types'
import { classes } from '../ui/classes'
import { missText } from './health'
import { BEST_EFFORT, isBestEffort } from './Reason'
import { Remedies } from './Remedies'

interface DecisionProps {
  camera: Camera
  /** How much of the reason is shown: two lines, all of it, or all of it in larger letters. */
  reason?: 'clamped' | 'whole' | 'large'
}

export function Decision({ camera, reason = 'clamped' }: DecisionProps) {
  const { advice } = camera
  const missed = missText(camera)
  const why = camera.trouble ?? advice?.reason ?? ''
  return (
    <section>
      <h3 class="visually-hidden">What the box decided</h3>
      <p class={styles.variant}>
        <strong data-testid="variant">{advice?.variant ?? 'no variant yet'}</strong>
        {advice && (
          <span class="muted">
            {advice.width_px} × {advice.height_px} px · {frameRate(advice.rate_hz)} · quality {advice.quality}
          </span>
        )}
      </p>
      <p class={classes(styles.reason, styles[reason])} data-testid="reason" title={why}>{why}</p>
      {isBestEffort(why) && <p data-testid="best-effort"><span class="muted">Best effort:</span> {BEST_EFFORT}.</p>}
      {missed && <p data-testid="misses">{missed}.</p>}
      <Remedies camera={camera.id} remedies={camera.remedies} />
    </section>
  )
}

// How this camera does: over the last 10 s by its own clock, and every frame since the start.

import frameCountsStyles from '../figures/FrameCounts.module.css'
import styles from './Figures.module.css'

import { classes } from '../ui/classes'
import { CountsLine } from '../figures/CountsLine'
import { DropReasons } from '../figures/DropReasons'
import { dropLines } from '../figures/counts'
import { bitrate, count, milliseconds, percent, rate, UNKNOWN } from '../ui/format'
import { GOOD_SHARE, STRAINED_SHARE } from '../figures/health'
import type { Status } from './browserCamera'

const SKIPPED: Readonly<Record<string, string>> = {
  window: 'a newer one came first',
  infeasible: 'too late at any size',
  rate: 'more than asked for',
  offline: 'no connection',
}

interface FiguresProps {
  status: Status
  name: string
  onRetry: (() => void) | undefined
}

export function Figures({ status, name, onRetry }: FiguresProps) {
  const { phase, remark, counts, skipped } = status
  const lines = dropLines(counts.dropped)
  const unsent = Object.entries(skipped)
  return (
    <section class={`card ${styles.figures}`} aria-label={`${phase === 'ended' ? 'What became of the frames of' : 'How it goes with'} ${name}`} data-testid="figures" data-phase={phase}>
      {phase === 'waiting' && (
        <div class={styles.remark}>
          <p data-testid="remark">{remark}</p>
          <button type="button" onClick={onRetry}>Try now</button>
        </div>
      )}
      {phase !== 'ended' && <Now status={status} />}
      <div class={frameCountsStyles.frameCounts}>
        <CountsLine counts={counts} />
        {lines.length > 0 && (
          <p class={frameCountsStyles.drops} data-testid="drops">
            Dropped:
            {lines.map(({ reason, amount, meaning }) => <span key={reason} title={meaning}>{count(amount)} {reason}</span>)}
          </p>
        )}
        <DropReasons dropped={counts.dropped} />
        {unsent.length > 0 && (
          <p class={`${frameCountsStyles.drops} muted`} data-testid="skipped">
            Never sent:
            {unsent.map(([reason, amount]) => <span key={reason}>{count(amount)} {SKIPPED[reason] ?? reason}</span>)}
          </p>
        )}
      </div>
    </section>
  )
}

/** How it does now; once it is off, that is past. */
function Now({ status }: { status: Status }) {
  const { onTimeShare, latency_ms, fps, advice, bandwidth_bps, sent_px, variant } = status
  return (
    <>
      <dl class={styles.grid}>
        <div class={classes(styles.onTime, onTimeShare !== null && healthOf(onTimeShare))}>
          <dt>on time, 10 s</dt>
          <dd data-testid="on-time">{percent(onTimeShare)}</dd>
        </div>
        <div><dt>latency, median</dt><dd data-testid="latency">{milliseconds(latency_ms)}</dd></div>
        <div><dt>answers per s</dt><dd>{rate(fps)}</dd></div>
        <div><dt>variant</dt><dd data-testid="variant">{variant ?? advice?.variant ?? UNKNOWN}</dd></div>
        <div><dt>sent, px</dt><dd data-testid="sent">{sent_px ? `${sent_px.width} × ${sent_px.height}` : UNKNOWN}</dd></div>
        <div><dt>uplink</dt><dd data-testid="link">{bitrate(bandwidth_bps)}</dd></div>
      </dl>
      <p class={styles.why} data-testid="why">{advice?.reason ?? ''}</p>
    </>
  )
}

function healthOf(share: number): string {
  return `health-${share >= GOOD_SHARE ? 'good' : share >= STRAINED_SHARE ? 'strained' : 'failing'}`
}

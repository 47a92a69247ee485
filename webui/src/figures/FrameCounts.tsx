// How a camera's frames ended, and for which reasons they were dropped.

import styles from './FrameCounts.module.css'

import { dropLines } from './counts'
import { count } from '../ui/format'
import type { ByReason, Camera } from '../api/types'
import { CountsLine } from './CountsLine'
import { DropReasons } from './DropReasons'

export function FrameCounts({ camera, window_s }: { camera: Camera; window_s: number }) {
  return (
    <section class={styles.frameCounts}>
      <h3>Frames <span class="muted">since the box started</span></h3>
      <CountsLine counts={camera.counts} />
      <Drops title="Dropped" none="None dropped" dropped={camera.counts.dropped} testid="drops" />
      <Drops
        title={`Last ${window_s} s`}
        none={`None in the last ${window_s} s`}
        dropped={camera.dropped_in_window}
        testid="drops-window"
      />
      <DropReasons dropped={camera.counts.dropped} />
    </section>
  )
}

interface DropsProps {
  title: string
  none: string
  dropped: ByReason
  testid: string
}

function Drops({ title, none, dropped, testid }: DropsProps) {
  const drops = dropLines(dropped)
  return (
    <ul class={styles.drops} data-testid={testid} aria-label={`${title}: dropped frames by reason`}>
      <li class="muted">{drops.length === 0 ? none : `${title}:`}</li>
      {drops.map(({ reason, amount, meaning }) => (
        <li key={reason} title={`Dropped: ${meaning}`}>{count(amount)} {reason}</li>
      ))}
    </ul>
  )
}

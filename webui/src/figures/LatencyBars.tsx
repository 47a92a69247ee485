// Where a frame's time goes: median and 99th percentile against the deadline.

import styles from './LatencyBars.module.css'

import { classes } from '../ui/classes'
import { isKnown, milliseconds } from '../ui/format'
import { laterNote, scaleMs, segments, STAGES, stageWord } from './latency'
import type { Camera, LatencySplit } from '../api/types'

export function LatencyBars({ camera, window_s, fetched = false }: { camera: Camera; window_s: number; fetched?: boolean }) {
  const p50 = camera.latency_ms?.p50 ?? null
  const p99 = camera.latency_ms?.p99 ?? null
  const scale_ms = scaleMs(camera.slo_ms, [p50?.total, p99?.total])
  const limit = `${(camera.slo_ms / scale_ms) * 100}%`
  return (
    <section data-testid="latency">
      <h3 title="From the capture of a frame to the arrival of its answer">
        Latency <span class="muted">P50 / P99, last {window_s} s</span>
        <span class={styles.limitNote}>limit {milliseconds(camera.slo_ms)}{laterNote(camera.later)}</span>
      </h3>
      <Bar name="P50" fetched={fetched} split={p50} scale_ms={scale_ms} limit={limit} slo_ms={camera.slo_ms} />
      <Bar name="P99" fetched={fetched} split={p99} scale_ms={scale_ms} limit={limit} slo_ms={camera.slo_ms} />
      <dl class={styles.stages} title="P50 / P99 of each stage: percentiles of their own, which need not add up">
        {STAGES.map((stage) => (
          <div key={stage}>
            <dt title={fetched && stage === 'network' ? 'From the capture at the camera until the box has the decoded picture' : undefined}>
              <span class={`swatch stage-${stage}`} aria-hidden="true" />{stageWord(stage, fetched)}
            </dt>
            <dd>{bare(p50?.[stage])} / {milliseconds(p99?.[stage])}</dd>
          </div>
        ))}
      </dl>
    </section>
  )
}

/** Milliseconds without the unit, which the figure beside it carries. */
function bare(ms: number | null | undefined): string {
  return milliseconds(ms).replace(/\s*ms$/, '')
}

interface BarProps {
  name: string
  fetched: boolean
  split: LatencySplit | null
  scale_ms: number
  limit: string
  slo_ms: number
}

function Bar({ name, fetched, split, scale_ms, limit, slo_ms }: BarProps) {
  const total = split?.total
  const over = isKnown(total) && total > slo_ms
  const parts = split ? segments(split, scale_ms) : []
  const spoken = parts.map(({ stage, ms }) => `${stageWord(stage, fetched)} ${milliseconds(ms)}`).join(', ')
  return (
    <div class={classes(styles.row, over && styles.over)}>
      <span class={styles.name}>{name}</span>
      <div
        class={styles.bar}
        role="img"
        aria-label={`${name} ${milliseconds(total)} of ${milliseconds(slo_ms)}: ${spoken || 'not measured yet'}`}
      >
        {parts.map(({ stage, width }) => (
          <div key={stage} class={`stage-${stage}`} style={{ width: `${width}%` }} />
        ))}
        <div class={styles.limit} style={{ left: limit }} />
      </div>
      <span class={styles.total}>{milliseconds(total)}</span>
    </div>
  )
}

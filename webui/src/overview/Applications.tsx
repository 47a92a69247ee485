// Execution times by application: measured against what the profile says.

import styles from './Applications.module.css'

import { classes } from '../ui/classes'
import { band, mostUsed, scaleMs, shownMs, verdict } from './applications'
import { count, milliseconds } from '../ui/format'
import type { AppLatency, Percentiles } from '../api/types'

const SHOWN = 12

export function Applications({ applications: all }: { applications: readonly AppLatency[] }) {
  if (all.length === 0) return null
  const applications = mostUsed(all, SHOWN)
  const scale_ms = scaleMs(applications)
  const executors = new Set(applications.map(({ executor }) => executor))
  return (
    <section class={`card live-data ${styles.applications}`} aria-label="Applications" data-testid="applications">
      <h2 title="Recent batches, each brought to a batch of one, from the median to the 99th percentile">
        Execution by application
        <span class={styles.legend}><span class={`swatch ${styles.measured}`} aria-hidden="true" />measured</span>
        <span class={styles.legend}><span class={`swatch ${styles.profiled}`} aria-hidden="true" />profile, P50 to P99</span>
      </h2>
      <ul>
        {applications.map((times) => (
          <li key={`${times.app} ${times.variant} ${times.executor}`} title={basis(times)}>
            <span class={styles.name}>
              <strong>{times.app}</strong> <span class="muted">{times.variant}{executors.size > 1 && ` on ${times.executor}`}</span>
            </span>
            <div class={styles.bands} role="img" aria-label={spoken(times)}>
              <div class={styles.profiled} style={styleOf(times.profile_ms, scale_ms)} />
              <div class={styles.measured} style={styleOf(shownMs(times), scale_ms)} />
            </div>
            <span class={styles.times}>
              <span class="muted">P50</span> {milliseconds(shownMs(times).p50)} <span class="muted">P99 {milliseconds(shownMs(times).p99)}</span>
            </span>
            <span class={classes('muted', styles.verdict, verdict(times) === 'slower' && styles.slower)}>{verdict(times)}</span>
          </li>
        ))}
      </ul>
    </section>
  )
}

function styleOf(percentiles: Percentiles, scale_ms: number) {
  const { left, width } = band(percentiles, scale_ms)
  return { left: `${left}%`, width: `${width}%` }
}

function basis({ measured_ms, count: requests }: AppLatency): string {
  return measured_ms === null ? 'Expected by what was learned before the start' : `of ${count(requests)} recent requests`
}

function spoken(times: AppLatency): string {
  const range = ({ p50, p99 }: Percentiles) => `P50 ${milliseconds(p50)}, P99 ${milliseconds(p99)}`
  return `${times.measured_ms === null ? 'expected' : 'measured'} ${range(shownMs(times))}; profile ${range(times.profile_ms)}`
}

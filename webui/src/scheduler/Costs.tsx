// What deciding costs, and how busy each executor is.

import styles from './Costs.module.css'

import { count, isKnown, microseconds, milliseconds, percent } from '../ui/format'
import type { DecisionTimes } from './timeline'
import type { Box } from '../api/types'

export function Costs({ box, decision }: { box: Box; decision: DecisionTimes | null }) {
  return (
    <section class={`${styles.costs} card`} aria-labelledby="costs-title" data-testid="costs">
      <h2>
        <span id="costs-title">Decisions</span> <span class="muted">{decision ? `time each took, the last ${count(decision.count)}` : ''}</span>
      </h2>
      <dl class={styles.times}>
        {(['p50', 'p99', 'max'] as const).map((name) => (
          <div key={name}>
            <dt>{name === 'max' ? 'Longest' : name.toUpperCase()}</dt>
            <dd>{microseconds(decision?.[name])}</dd>
          </div>
        ))}
      </dl>
      <dl class={styles.times} data-testid="loop-costs">
        <div title="How late the event loop gets to what is due: 99th percentile and longest">
          <dt>Loop lag, P99</dt>
          <dd>{milliseconds(box.loop_lag_ms?.p99)}</dd>
        </div>
        <div>
          <dt>Loop lag, longest</dt>
          <dd>{milliseconds(box.loop_lag_ms?.max)}</dd>
        </div>
        <div title="How long it took to compute the plan that is in force">
          <dt>Last plan</dt>
          <dd>{milliseconds(box.planner.last_ms)}</dd>
        </div>
      </dl>
      <h2>Executors <span class="muted">busy, over 10 s</span></h2>
      <ul class={styles.busy}>
        {box.executors.map((executor) => (
          <li key={executor.id}>
            <span>{executor.id}</span>
            <div class="meter" aria-hidden="true">
              <div style={{ width: `${Math.min(1, executor.utilisation ?? 0) * 100}%` }} />
            </div>
            <strong>{percent(executor.utilisation, 0)}</strong>
            <span class="muted">
              {isKnown(executor.batch_size_mean) ? `${executor.batch_size_mean.toFixed(1)} requests a batch` : 'no batches'}
            </span>
          </li>
        ))}
      </ul>
    </section>
  )
}

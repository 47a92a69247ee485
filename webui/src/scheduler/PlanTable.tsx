// The plan in force: what each camera is advised to send, and why.

import styles from './PlanTable.module.css'

import { frameRate, isKnown, milliseconds } from '../ui/format'
import { priceText } from '../figures/limits'
import { Reason } from '../figures/Reason'
import { usePolled } from '../api/polling'
import { hashOf } from '../app/route'
import type { Box, Camera } from '../api/types'
import { BY_NAME } from '../ui/names'

interface PlanTableProps {
  cameras: readonly Camera[]
  planner: Box['planner']
}

const PERIOD_MS = 3_000

export function PlanTable({ cameras, planner }: PlanTableProps) {
  const { answer } = usePolled('GET /v1/plan', {}, PERIOD_MS)
  const planned = cameras
    .filter(({ connected, advice }) => connected && advice)
    .sort((a, b) => BY_NAME.compare(a.id, b.id))
  return (
    <section class={`${styles.plan} card`} aria-labelledby="plan-title" data-testid="plan">
      <h2>
        <span id="plan-title">The plan now</span>{' '}
        <span class="muted">
          {isKnown(planner?.age_s) && `${planner.age_s.toFixed(1)} s old, took ${milliseconds(planner.last_ms)}`}
        </span>
      </h2>
      {planned.length === 0 && <p class="muted">No camera is connected.</p>}
      {planned.length > 0 && (
        <table>
          <thead>
            <tr>
              <th scope="col">Camera</th>
              <th scope="col">Variant</th>
              <th scope="col" class="figure">Size</th>
              <th scope="col" class="figure">Rate</th>
              <th scope="col">Why</th>
            </tr>
          </thead>
          <tbody>
            {planned.map(({ id, advice }) => (
              <tr key={id}>
                <th scope="row"><a href={hashOf({ page: 'camera', camera: id })}>{id}</a></th>
                <td>{advice?.variant}</td>
                <td class="figure">{advice?.width_px} × {advice?.height_px}{'\u202f'}px</td>
                <td class="figure">{frameRate(advice?.rate_hz)}</td>
                <td class={styles.why}><div><Reason text={advice?.reason ?? ''} /></div></td>
              </tr>
            ))}
          </tbody>
        </table>
      )}
      {answer && answer.prices.length > 0 && (
        <ul class={styles.prices} data-testid="prices">
          {answer.prices.map((price) => <li key={`${price.resource} ${price.of.join(' ')}`}>{priceText(price)}.</li>)}
        </ul>
      )}
      {planner && planner.groups.length > 0 && (
        <ul data-testid="partitions">
          {planner.groups.map(({ executors, variants }) => (
            <li key={executors[0]}>{executors.join(', ')} {executors.length > 1 ? 'run' : 'runs'} only {variants.join(', ')}</li>
          ))}
        </ul>
      )}
    </section>
  )
}

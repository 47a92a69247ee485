// The charts' figures as a table, the newest first; made only while it is open.

import styles from './HistoryTable.module.css'

import { useState } from 'preact/hooks'

import { bitrate, count, milliseconds, rate } from '../ui/format'
import { instantText } from './ranges'
import type { History } from './history'
import { misses } from '../figures/counts'
import { STAGES, stageWord } from '../figures/latency'

export function HistoryTable({ history, fetched }: { history: History; fetched: boolean }) {
  const [open, setOpen] = useState(false)
  return (
    <details class={styles.table} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>As a table</summary>
      {open && (
        <div class="scroll-x" tabIndex={0} role="region" aria-label="The charts as a table">
          <Rows history={history} fetched={fetched} />
        </div>
      )}
    </details>
  )
}

function Rows({ history, fetched }: { history: History; fetched: boolean }) {
  const { at_ms, covered_ms, latency_ms: { p50, p99 }, bandwidth_bps, fps, captured, late, dropped, variants, zones, lines, classes } = history
  const tracked = Object.keys({ ...zones, ...lines }).length > 0
  const kept = at_ms.map((_, at) => at).filter((at) => (covered_ms[at] ?? null) !== null)
  return (
    <table data-testid="history-table">
      <thead>
        <tr>
          <th scope="col">From</th>
          <th scope="col">Median</th>
          {STAGES.map((stage) => <th key={stage} scope="col">{stageWord(stage, fetched)}</th>)}
          <th scope="col">P99</th>
          <th scope="col">Measured</th>
          <th scope="col">Estimated</th>
          <th scope="col">Answered/s</th>
          <th scope="col">Captured</th>
          <th scope="col">Missed</th>
          <th scope="col">Variants</th>
          <th scope="col">Objects</th>
          {tracked && <th scope="col">In zones</th>}
          {tracked && <th scope="col">Crossings</th>}
        </tr>
      </thead>
      <tbody>
        {kept.reverse().map((at) => (
          <tr key={at_ms[at]}>
            <th scope="row">{instantText(at_ms[at] ?? 0, history.to_ms - history.from_ms)}</th>
            <td>{milliseconds(p50.total[at])}</td>
            {STAGES.map((stage) => <td key={stage}>{milliseconds(p50[stage][at])}</td>)}
            <td>{milliseconds(p99.total[at])}</td>
            <td>{bitrate(bandwidth_bps.measured.mean[at])}</td>
            <td>{bitrate(bandwidth_bps.estimated.mean[at])}</td>
            <td>{rate(fps[at])}</td>
            <td>{count(captured[at])}</td>
            <td>{parts({ late, ...misses(dropped) }, at) || 'none'}</td>
            <td>{parts(variants, at)}</td>
            <td>{means(classes, at)}</td>
            {tracked && <td>{means(zones, at)}</td>}
            {tracked && <td>{parts(crossings(lines), at)}</td>}
          </tr>
        ))}
      </tbody>
    </table>
  )
}

/** "2.4 person, 0.1 car". */
function means(columns: History['zones'], at: number): string {
  return Object.entries(columns).flatMap(([name, column]) => (column[at] ? [`${column[at].toFixed(1)} ${name}`] : [])).join(', ')
}

/** A column for each line and direction. */
function crossings(lines: History['lines']): History['dropped'] {
  return Object.fromEntries(Object.entries(lines).flatMap(([name, ways]) => [[`${name} in`, ways.in], [`${name} out`, ways.out]]))
}

/** "3 queue, 1 late". */
function parts(columns: History['dropped'], at: number): string {
  return Object.entries(columns).flatMap(([name, column]) => (column[at] ? [`${count(column[at])} ${name}`] : [])).join(', ')
}

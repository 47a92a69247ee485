// A camera's history as charts on one axis of time, with one cursor; by keyboard and as a table, too.

import styles from './Timelines.module.css'

import { useMemo, useState } from 'preact/hooks'

import { chartsOf, newest, type Present } from './charts'
import { joined } from './gaps'
import { instantText, RANGES, rangeOf } from './ranges'
import type { History } from './history'
import { usePolled } from '../api/polling'
import { hashOf } from '../app/route'
import { HistoryChart } from './HistoryChart'
import { HistoryTable } from './HistoryTable'

interface TimelinesProps {
  camera: string
  range: string | undefined
  present: Present
  /** How long the box has known it. */
  age_ms: number
}

const MOVES: Readonly<Record<string, number>> = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity }
const KEYS = 'The left and right arrow keys move through the time, Page Up and Page Down faster, Home and End to its ends.'

export function Timelines({ camera, range: key, present, age_ms }: TimelinesProps) {
  const range = rangeOf(key, age_ms)
  const { answer, error } = usePolled('GET /v1/cameras/{id}/history', { path: { id: camera }, query: { range: range.key } }, range.refresh_ms)
  return (
    <section class={`${styles.card} card`} aria-labelledby="timelines-title">
      <header>
        <h2 id="timelines-title">What happened</h2>
        <nav class={styles.ranges} aria-label="How far back">
          {RANGES.map(({ key, name }) => (
            <a key={key} href={hashOf({ page: 'camera', camera, range: key })} aria-current={key === range.key ? 'true' : undefined}>{name}</a>
          ))}
        </nav>
      </header>
      {error && <p class={styles.error} role="status">{error.status === 404 ? 'Nothing has been kept of it.' : error.message}</p>}
      {answer ? <Charts history={answer} present={present} /> : !error && <div class={styles.chartsRoom} aria-busy="true" />}
    </section>
  )
}

function Charts({ history: answer, present: { slo_ms, rate_hz, fetched } }: { history: History; present: Present }) {
  const [hoveredIndex, setHoveredIndex] = useState<number | null>(null)
  const [keyboardIndex, setKeyboardIndex] = useState<number | null>(null)
  const history = useMemo(() => joined(answer), [answer])
  const charts = useMemo(() => chartsOf(history, { slo_ms, rate_hz, fetched: fetched ?? false }), [history, slo_ms, rate_hz, fetched])
  const { at_ms, from_ms, to_ms, covered_ms } = history
  const last = newest(history)
  const activeIndex = keyboardIndex ?? hoveredIndex ?? last
  const at = at_ms[activeIndex]
  const when = at === undefined ? 'nothing was kept in this time' : instantText(at, to_ms - from_ms)

  const press = (event: KeyboardEvent) => {
    const by = MOVES[event.key]
    if (event.key === 'Escape') setKeyboardIndex(null)
    if (by === undefined || at_ms.length === 0) return
    event.preventDefault()
    setKeyboardIndex(Math.min(at_ms.length - 1, Math.max(0, (activeIndex < 0 ? at_ms.length - 1 : activeIndex) + by)))
  }
  const spoken = charts.map(({ title, lines }) => `${title}: ${lines.map(({ name, words }) => `${name} ${words?.(activeIndex)}`).join(', ')}`).join('. ')
  return (
    <>
      <p class={styles.instant} data-testid="instant" data-from={from_ms} data-to={to_ms}>
        <strong>{when}</strong>
        <span class="muted">
          {at === undefined ? '' : (covered_ms[activeIndex] ?? null) === null ? 'nothing was kept' : activeIndex === last && keyboardIndex === null && hoveredIndex === null ? 'the latest' : ''}
        </span>
      </p>
      <div class={styles.charts} role="group" tabIndex={0} aria-label="Charts" aria-describedby="charts-keys" onKeyDown={press} onBlur={() => setKeyboardIndex(null)}>
        {charts.map((chart) => (
          <HistoryChart key={chart.key} chart={chart} at_ms={at_ms} from_ms={from_ms} to_ms={to_ms} activeIndex={activeIndex} keyboardIndex={keyboardIndex} onHover={setHoveredIndex} />
        ))}
      </div>
      <p id="charts-keys" class="visually-hidden">{KEYS}</p>
      <p class="visually-hidden" role="status">{keyboardIndex === null ? '' : `${when}. ${spoken}`}</p>
      <HistoryTable history={history} fetched={fetched ?? false} />
    </>
  )
}

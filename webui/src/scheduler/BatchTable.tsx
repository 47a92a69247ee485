// The batches of the view as a table: for those who cannot see the canvas, and for reading numbers one by one.

import styles from './BatchTable.module.css'

import type { RefObject } from 'preact'
import { useState } from 'preact/hooks'

import { milliseconds } from '../ui/format'
import { isSeen } from './paint'
import type { TimelineController } from './timelineController'
import { endOf, leastSlack, startOf, verdictOf, type TimelineStore } from './timelineStore'
import type { Batch } from './timeline'
import { timeOfDay } from './view'
import { milliseconds1 } from './BatchDetails'

const SHOWN_LIVE = 8
const SHOWN_PAUSED = 100

interface BatchTableProps {
  store: TimelineStore
  controller: RefObject<TimelineController | null>
  paused: boolean
  onSelect: (batch: Batch) => void
}

export function BatchTable({ store, controller, paused, onSelect }: BatchTableProps) {
  const [open, setOpen] = useState(false)
  return (
    <details class={styles.card} onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>Batches as a table</summary>
      {open && <Rows batches={chosenRows(store, controller.current, paused)} offset_ms={store.unixOffset_ms} onSelect={onSelect} />}
    </details>
  )
}

/** While paused those in view, else the newest; the newest first. */
function chosenRows(store: TimelineStore, controller: TimelineController | null, paused: boolean): Batch[] {
  const all = store.inOrder()
  const seen = paused && controller ? all.filter((batch) => isSeen(batch, controller.view)) : all
  return seen.slice(paused ? -SHOWN_PAUSED : -SHOWN_LIVE).reverse()
}

interface RowsProps {
  batches: readonly Batch[]
  offset_ms: number
  onSelect: (batch: Batch) => void
}

function Rows({ batches, offset_ms, onSelect }: RowsProps) {
  return (
    <div class="scroll-x" tabIndex={0} role="region" aria-label="Batches">
      <table class={styles.batches} data-testid="batches">
        <thead>
          <tr>
            <th scope="col">Batch</th>
            <th scope="col">Began</th>
            <th scope="col">Executor</th>
            <th scope="col">Variant</th>
            <th scope="col" class="figure">Frames</th>
            <th scope="col" class="figure">Ran</th>
            <th scope="col" class="figure">Expected</th>
            <th scope="col" class="figure">Least slack</th>
            <th scope="col">Outcome</th>
            <th scope="col">Cameras</th>
          </tr>
        </thead>
        <tbody>
          {batches.map((batch) => (
            <tr key={batch.batch}>
              <th scope="row">
                <button type="button" onClick={() => onSelect(batch)}>{batch.batch}</button>
              </th>
              <td>{timeOfDay(startOf(batch) + offset_ms, true)}</td>
              <td>{batch.executor}</td>
              <td>{batch.variant}</td>
              <td class="figure">{batch.size}{batch.padded_size > batch.size && <span class="muted"> of {batch.padded_size}</span>}</td>
              <td class="figure">{milliseconds(ranFor(batch))}</td>
              <td class="figure">{milliseconds(batch.expected_ms)}</td>
              <td class="figure">{slackText(batch)}</td>
              <td>{VERDICTS[verdictOf(batch)]}</td>
              <td>{[...new Set(batch.requests.map(({ camera }) => camera))].join(', ')}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

const VERDICTS = { failed: 'not all answered', late: 'late', on_time: 'on time', running: 'running', sample: 'sample' }

function ranFor(batch: Batch): number | null {
  const end_ms = endOf(batch)
  return end_ms === null ? null : end_ms - startOf(batch)
}

function slackText(batch: Batch): string {
  if (batch.kind === 'sample' || batch.answered_ms === null) return '–'
  const slack_ms = leastSlack(batch, batch.answered_ms)
  return slack_ms === null ? '–' : milliseconds1(slack_ms)
}

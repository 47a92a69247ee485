// One batch looked at closely: its times, and for each request where its time went and what was left.

import countsStyles from '../figures/CountsLine.module.css'
import latencyStyles from '../figures/LatencyBars.module.css'
import styles from './BatchDetails.module.css'

import { milliseconds, plural } from '../ui/format'
import type { Pointed } from './timelineController'
import { endOf, startOf, verdictOf, type TimelineStore } from './timelineStore'
import type { Batch, BatchRequest, DroppedRequest } from './timeline'
import { timeOfDay } from './view'

interface BatchDetailsProps {
  looked: Pointed | null
  store: TimelineStore
  paused: boolean
}

export function BatchDetails({ looked, store, paused }: BatchDetailsProps) {
  if (!looked) return <Hint paused={paused} />
  if ('drops' in looked) return <Drops drops={looked.drops} offset_ms={store.unixOffset_ms} />
  // It may have come to its end since it was pointed at.
  const batch = store.find(looked.batch.batch) ?? looked.batch
  return <OneBatch batch={batch} offset_ms={store.unixOffset_ms} />
}

function Hint({ paused }: { paused: boolean }) {
  return (
    <div class={styles.hint}>
      <p>
        {paused
          ? 'Choose a batch to see its requests. Drag the timeline, or use its arrow keys, to move within the last 60 s; + and − zoom.'
          : 'Point at a batch to see its requests. A click on the timeline, or Space while it has the focus, pauses it.'}
      </p>
      <ul class={styles.keys}>
        <li><span class={styles.batchKey}>2</span> a batch of two requests, in its variant's colour</li>
        <li><span class={`${styles.batchKey} ${styles.lateKey}`}>2</span> some were late, or got no answer</li>
        <li><span class={`${styles.batchKey} ${styles.sampleKey}`}>s</span> a finished frame run again, to learn its time</li>
        <li><span class={styles.dropKey}>✕</span> a frame dropped while it waited</li>
        <li><span class={styles.changeKey}>▼</span> the plan changed</li>
      </ul>
    </div>
  )
}

function OneBatch({ batch, offset_ms }: { batch: Batch; offset_ms: number }) {
  const verdict = verdictOf(batch)
  const end_ms = endOf(batch)
  const padded = batch.padded_size > batch.size ? `, padded to ${batch.padded_size}` : ''
  return (
    <div data-batch={batch.batch}>
      <h3>
        {batch.kind === 'sample' ? 'Sample' : 'Batch'} {batch.batch}{' '}
        <span class="muted">
          {batch.variant} on {batch.executor}, at {timeOfDay(startOf(batch) + offset_ms, true)}
        </span>
      </h3>
      <p class={styles.facts}>
        <span>{batch.kind === 'sample' ? 'one frame again, to learn its time' : membersOf(batch) + padded}</span>
        <span>
          {end_ms === null ? 'running' : <>ran <strong>{milliseconds(end_ms - startOf(batch))}</strong></>}, expected{' '}
          {milliseconds(batch.expected_ms)}
        </span>
        {batch.threads !== null && <span>on {plural(batch.threads, 'CPU thread')}</span>}
        {batch.started_ms !== null && <span>started {milliseconds(batch.started_ms - batch.ordered_ms)} after it was ordered</span>}
        {verdict === 'failed' && <strong class={countsStyles.off}>not all were answered</strong>}
        {verdict === 'late' && <strong class={countsStyles.off}>late</strong>}
      </p>
      <table class={styles.requests}>
        <thead>
          <tr>
            <th scope="col">Camera</th>
            <th scope="col">Request</th>
            <th scope="col" class={styles.stages}>From capture to deadline</th>
            <th scope="col" class="figure">Slack at start</th>
            <th scope="col" class="figure">At answer</th>
            <th scope="col">Outcome</th>
          </tr>
        </thead>
        <tbody>
          {batch.requests.map((request) => (
            <RequestRow key={request.request} request={request} batch={batch} />
          ))}
        </tbody>
      </table>
    </div>
  )
}

/** "2 frames and 1 crop". */
export function membersOf({ size, requests }: Pick<Batch, 'size' | 'requests'>): string {
  const crops = requests.filter(({ stage }) => stage !== null).length
  const kinds = [[size - crops, 'frame'], [crops, 'crop']] as const
  return kinds.flatMap(([amount, kind]) => (amount > 0 ? [plural(amount, kind)] : [])).join(' and ')
}

function RequestRow({ request, batch }: { request: BatchRequest; batch: Batch }) {
  const sample = batch.kind === 'sample'
  const slack = (at_ms: number | null) => (sample || at_ms === null ? '–' : milliseconds1(request.deadline_ms - at_ms))
  return (
    <tr data-request={request.request}>
      <th scope="row">{request.camera}</th>
      <td>
        {request.request}
        {request.stage !== null && <span class="muted"> {request.stage} of {request.frame}</span>}
      </td>
      <td class={styles.stages}>{!sample && <Way request={request} batch={batch} />}</td>
      <td class="figure">{slack(startOf(batch))}</td>
      <td class="figure">{slack(batch.answered_ms)}</td>
      <td><OutcomeWord outcome={request.outcome} sample={sample} /></td>
    </tr>
  )
}

/** Milliseconds to one digit, with a true minus: slack may be used up. */
export function milliseconds1(value: number): string {
  return `${value.toFixed(1).replace('-', '−')}\u202fms`
}

export function OutcomeWord({ outcome, sample }: { outcome: string | null; sample: boolean }) {
  if (sample) return <span class="muted">sample</span>
  if (outcome === null) return <span class="muted">running</span>
  if (outcome === 'on_time') return <span class={styles.onTime}>on time</span>
  return <strong class={countsStyles.off}>{outcome === 'late' ? 'late' : `dropped: ${outcome}`}</strong>
}

/** Network, waiting, running, and what was left, as parts of the time from capture to deadline. */
function Way({ request, batch }: { request: BatchRequest; batch: Batch }) {
  const { captured_ms, arrived_ms, deadline_ms } = request
  const start_ms = startOf(batch)
  const done_ms = batch.answered_ms ?? start_ms
  const whole_ms = Math.max(deadline_ms, done_ms) - captured_ms
  const parts = [
    ['network', arrived_ms - captured_ms],
    ['queue', start_ms - arrived_ms],
    ['inference', done_ms - start_ms],
  ] as const
  const words = parts.map(([name, ms]) => `${wordOf(name, request)} ${milliseconds(ms)}`).join(', ')
  return (
    <div class={styles.bar} role="img" aria-label={words} title={words}>
      {parts.map(([name, ms]) => (
        <div key={name} class={`stage-${name}`} style={{ width: `${(Math.max(0, ms) / whole_ms) * 100}%` }} />
      ))}
      {done_ms > deadline_ms && (
        <div class={latencyStyles.limit} style={{ left: `${((deadline_ms - captured_ms) / whole_ms) * 100}%` }} />
      )}
    </div>
  )
}

function wordOf(part: keyof typeof WORDS, request: BatchRequest): string {
  return part === 'network' && request.stage !== null ? 'until it was cut' : WORDS[part]
}

const WORDS = { network: 'on its way', queue: 'waited', inference: 'ran' } as const

function Drops({ drops, offset_ms }: { drops: readonly DroppedRequest[]; offset_ms: number }) {
  return (
    <div>
      <h3>{plural(drops.length, 'frame')} dropped <span class="muted">before a batch took {drops.length === 1 ? 'it' : 'them'}</span></h3>
      <table class={styles.requests}>
        <thead>
          <tr>
            <th scope="col">Camera</th>
            <th scope="col">Request</th>
            <th scope="col">At</th>
            <th scope="col" class="figure">At the box for</th>
            <th scope="col" class="figure">Slack left</th>
            <th scope="col">Reason</th>
          </tr>
        </thead>
        <tbody>
          {drops.map((drop) => (
            <tr key={drop.request}>
              <th scope="row">{drop.camera}</th>
              <td>{drop.request}</td>
              <td>{timeOfDay(drop.at_ms + offset_ms, true)}</td>
              <td class="figure">{milliseconds1(drop.at_ms - drop.arrived_ms)}</td>
              <td class="figure">{milliseconds1(drop.deadline_ms - drop.at_ms)}</td>
              <td><strong class={countsStyles.off}>{drop.reason}</strong>{drop.variant && <span class="muted"> {drop.variant}</span>}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </div>
  )
}

// The timeline: its canvas, what steers it, and what is pointed at.

import styles from './TimelineCard.module.css'

import type { RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'

import { heightOf } from '../../timeline/paint'
import { neighbour } from '../../timeline/layout'
import { Stage, type Pointed } from '../../timeline/stage'
import { endOf, startOf, type TimelineStore } from '../../timeline/store'
import type { Batch } from '../../timeline/types'
import { spanText, ZOOM_STEP } from '../../timeline/view'
import type { Box } from '../../types'
import { PauseIcon, PlayIcon } from '../icons'
import { BatchDetails } from './BatchDetails'
import { BatchTable } from './BatchTable'
import { Legend } from './Legend'

export interface TimelineCardProps {
  store: TimelineStore
  /** Called when the store has news. */
  listeners: Set<() => void>
  box: Box
  /** A request that a person looks at; null: none. */
  onRequest: (request: number | null) => void
}

const SPAN_MS = 5_000
const NARROW_SPAN_MS = 2_500
const NARROW_PX = 600
const PAN_SHARE = 0.15
const KEYS =
  'While the timeline has the focus: Space pauses and resumes. Plus and minus zoom. While paused, the left and right arrow keys pan, Home and End go to ' +
  'the oldest and the newest, and the arrow keys with Shift go from batch to batch. Escape lets a batch go.'

export function TimelineCard({ store, listeners, box, onRequest }: TimelineCardProps) {
  const [frozen, freeze] = useState<TimelineStore | null>(null)
  const [pointed, point] = useState<Pointed | null>(null)
  const [chosen, choose] = useState<Pointed | null>(null)
  const [span_ms, setSpan] = useState(SPAN_MS)
  const canvas = useRef<HTMLCanvasElement>(null)
  const stage = useStage(canvas, store, listeners, {
    onPoint: point,
    onChoose: (what) => {
      choose(what)
      if (what) pause()
    },
    onPause: () => pause(),
    onSpan: setSpan,
  })
  const executors = box.executors.map(({ id }) => id)
  const shown = frozen ?? store

  function pause(): void {
    if (stage.current?.paused) return
    const copy = store.frozen()
    stage.current?.pause(copy)
    freeze(copy)
  }

  function resume(): void {
    stage.current?.resume(store)
    freeze(null)
    choose(null)
  }

  function select(batch: Batch | null): void {
    pause()
    choose(batch && { batch })
    if (batch) stage.current?.reveal(startOf(batch), endOf(batch) ?? startOf(batch))
  }

  function step(by: 1 | -1): void {
    pause()
    const batches = (stage.current?.paused ? shown : store).inOrder()
    const from = chosen && 'batch' in chosen ? chosen.batch.batch : latestSeen(batches, stage.current)
    select(neighbour(batches, from, by))
  }

  const press = onKeys({
    ' ': () => (frozen ? resume() : pause()),
    '+': () => stage.current?.zoom(ZOOM_STEP),
    '=': () => stage.current?.zoom(ZOOM_STEP),
    '-': () => stage.current?.zoom(1 / ZOOM_STEP),
    ArrowLeft: () => frozen && stage.current?.pan(-PAN_SHARE),
    ArrowRight: () => frozen && stage.current?.pan(PAN_SHARE),
    'Shift+ArrowLeft': () => step(-1),
    'Shift+ArrowRight': () => step(1),
    Home: () => frozen && stage.current?.toEdge('oldest'),
    End: () => frozen && stage.current?.toEdge('newest'),
    Escape: () => choose(null),
  })
  useEffect(() => {
    const at = stage.current
    if (!at) return
    at.show(executors)
    const number = chosen && 'batch' in chosen ? chosen.batch.batch : null
    const under = pointed && 'batch' in pointed ? pointed.batch.batch : null
    if (at.chosen === number && at.pointed === under) return
    at.chosen = number
    at.pointed = under
    at.redraw()
  })
  const looked = chosen ?? pointed
  const request = chosen && 'batch' in chosen ? (chosen.batch.requests[0]?.request ?? null) : null
  useEffect(() => onRequest(request), [request])

  return (
    <section class={`${styles.card} card`} aria-labelledby="timeline-title" data-paused={frozen !== null}>
      <header>
        <h2 id="timeline-title">What ran when</h2>
        <Legend store={shown} box={box} />
        <div class={styles.controls} role="group" aria-label="Timeline">
          <button
            type="button"
            class={styles.pause}
            aria-pressed={frozen !== null}
            onClick={() => (frozen ? resume() : pause())}
          >
            {frozen ? <PlayIcon /> : <PauseIcon />} {frozen ? 'Resume' : 'Pause'}
          </button>
          <button type="button" aria-label="Show more time" onClick={() => stage.current?.zoom(1 / ZOOM_STEP)}>
            −
          </button>
          <output aria-label="Time shown" data-testid="span">{spanText(span_ms)}</output>
          <button type="button" aria-label="Show less time" onClick={() => stage.current?.zoom(ZOOM_STEP)}>
            +
          </button>
        </div>
      </header>
      {shown.failure && <p class={styles.failure} role="alert">The box has stopped recording this: {shown.failure}</p>}
      <canvas
        ref={canvas}
        tabIndex={0}
        role="application"
        aria-label="Timeline of batches by executor"
        aria-describedby="timeline-keys"
        data-testid="timeline"
        onKeyDown={press}
        style={{ height: `${heightOf(executors.length)}px` }}
      />
      <p id="timeline-keys" class="visually-hidden">{KEYS}</p>
      <div class={styles.details} tabIndex={0} role="status" aria-live={frozen ? 'polite' : 'off'} data-testid="details">
        <BatchDetails looked={looked} store={shown} paused={frozen !== null} />
      </div>
      <BatchTable store={shown} stage={stage} paused={frozen !== null} onSelect={select} />
    </section>
  )
}

/** The newest batch that is over within the view: where going from batch to batch begins. */
function latestSeen(batches: readonly Batch[], stage: Stage | null): number | null {
  const end_ms = stage?.view.end_ms ?? Infinity
  return batches.findLast((batch) => (endOf(batch) ?? Infinity) <= end_ms)?.batch ?? null
}

interface StageWishes {
  onPoint: (what: Pointed | null) => void
  onChoose: (what: Pointed | null) => void
  onPause: () => void
  onSpan: (span_ms: number) => void
}

function useStage(
  canvas: RefObject<HTMLCanvasElement | null>,
  store: TimelineStore,
  listeners: Set<() => void>,
  wishes: StageWishes,
): RefObject<Stage | null> {
  const stage = useRef<Stage>(null)
  // The stage outlives the render whose wishes it was given.
  const latest = useRef(wishes)
  latest.current = wishes
  useEffect(() => {
    const element = canvas.current
    if (!element) return
    const span_ms = element.clientWidth < NARROW_PX ? NARROW_SPAN_MS : SPAN_MS
    const made = new Stage(
      element,
      store,
      {
        onPoint: (what) => latest.current?.onPoint(what),
        onChoose: (what) => latest.current?.onChoose(what),
        onPause: () => latest.current?.onPause(),
        onSpan: (shown_ms) => latest.current?.onSpan(shown_ms),
      },
      span_ms,
    )
    stage.current = made
    latest.current?.onSpan(span_ms)
    const heard = () => made.heard()
    listeners.add(heard)
    return () => {
      listeners.delete(heard)
      made.close()
      stage.current = null
    }
  }, [store, listeners])
  return stage
}

/** Handle keys by their names, "Shift+" before those of the arrows; what is none of them, or a browser's own, goes on. */
function onKeys(keys: Readonly<Record<string, () => void>>): (event: KeyboardEvent) => void {
  return (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return
    const arrow = event.shiftKey && event.key.startsWith('Arrow')
    const action = keys[arrow ? `Shift+${event.key}` : event.key]
    if (!action) return
    event.preventDefault()
    action()
  }
}

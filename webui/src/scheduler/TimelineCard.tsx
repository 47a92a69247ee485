// The timeline: its canvas, what steers it, and what is pointed at.

import styles from './TimelineCard.module.css'

import type { RefObject } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'

import { heightOf } from './paint'
import { neighbour } from './layout'
import { TimelineController, type Pointed, type TimelineListener } from './timelineController'
import { endOf, startOf, type TimelineStore } from './timelineStore'
import type { Batch } from './timeline'
import { spanText, ZOOM_STEP } from './view'
import type { Box } from '../api/types'
import { PauseIcon, PlayIcon } from '../ui/icons'
import { BatchDetails } from './BatchDetails'
import { BatchTable } from './BatchTable'
import { Legend } from './Legend'

export interface TimelineCardProps {
  store: TimelineStore
  /** Called after each update of the store. */
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
  const [frozen, setFrozen] = useState<TimelineStore | null>(null)
  const [hovered, setHovered] = useState<Pointed | null>(null)
  const [chosen, setChosen] = useState<Pointed | null>(null)
  const [span_ms, setSpan] = useState(SPAN_MS)
  const canvas = useRef<HTMLCanvasElement>(null)
  const controller = useTimelineController(canvas, store, listeners, {
    onPoint: setHovered,
    onChoose: (what) => {
      setChosen(what)
      if (what) pause()
    },
    onPause: () => pause(),
    onSpan: setSpan,
  })
  const executors = box.executors.map(({ id }) => id)
  const shown = frozen ?? store

  function pause(): void {
    if (controller.current?.paused) return
    const copy = store.frozen()
    controller.current?.pause(copy)
    setFrozen(copy)
  }

  function resume(): void {
    controller.current?.resume(store)
    setFrozen(null)
    setChosen(null)
  }

  function select(batch: Batch | null): void {
    pause()
    setChosen(batch && { batch })
    if (batch) controller.current?.reveal(startOf(batch), endOf(batch) ?? startOf(batch))
  }

  function step(by: 1 | -1): void {
    pause()
    const batches = (controller.current?.paused ? shown : store).inOrder()
    const from = chosen && 'batch' in chosen ? chosen.batch.batch : latestSeen(batches, controller.current)
    select(neighbour(batches, from, by))
  }

  const press = onKeys({
    ' ': () => (frozen ? resume() : pause()),
    '+': () => controller.current?.zoom(ZOOM_STEP),
    '=': () => controller.current?.zoom(ZOOM_STEP),
    '-': () => controller.current?.zoom(1 / ZOOM_STEP),
    ArrowLeft: () => frozen && controller.current?.pan(-PAN_SHARE),
    ArrowRight: () => frozen && controller.current?.pan(PAN_SHARE),
    'Shift+ArrowLeft': () => step(-1),
    'Shift+ArrowRight': () => step(1),
    Home: () => frozen && controller.current?.toEdge('oldest'),
    End: () => frozen && controller.current?.toEdge('newest'),
    Escape: () => setChosen(null),
  })
  useEffect(() => {
    const at = controller.current
    if (!at) return
    at.show(executors)
    const number = chosen && 'batch' in chosen ? chosen.batch.batch : null
    const under = hovered && 'batch' in hovered ? hovered.batch.batch : null
    if (at.chosen === number && at.hovered === under) return
    at.chosen = number
    at.hovered = under
    at.redraw()
  })
  const looked = chosen ?? hovered
  const request = chosen && 'batch' in chosen ? (chosen.batch.requests[0]?.request ?? null) : null
  useEffect(() => onRequest(request), [request, onRequest])

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
          <button type="button" aria-label="Show more time" onClick={() => controller.current?.zoom(1 / ZOOM_STEP)}>
            −
          </button>
          <output aria-label="Time shown" data-testid="span">{spanText(span_ms)}</output>
          <button type="button" aria-label="Show less time" onClick={() => controller.current?.zoom(ZOOM_STEP)}>
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
      <BatchTable store={shown} controller={controller} paused={frozen !== null} onSelect={select} />
    </section>
  )
}

/** The newest batch that is over within the view: where going from batch to batch begins. */
function latestSeen(batches: readonly Batch[], controller: TimelineController | null): number | null {
  const end_ms = controller?.view.end_ms ?? Infinity
  return batches.findLast((batch) => (endOf(batch) ?? Infinity) <= end_ms)?.batch ?? null
}

function useTimelineController(
  canvas: RefObject<HTMLCanvasElement | null>,
  store: TimelineStore,
  listeners: Set<() => void>,
  listener: TimelineListener,
): RefObject<TimelineController | null> {
  const controller = useRef<TimelineController>(null)
  // The controller outlives the render that it was made in.
  const latest = useRef(listener)
  latest.current = listener
  // biome-ignore lint/correctness/useExhaustiveDependencies: the canvas stays as long as the card
  useEffect(() => {
    const element = canvas.current
    if (!element) return
    const span_ms = element.clientWidth < NARROW_PX ? NARROW_SPAN_MS : SPAN_MS
    const made = new TimelineController(
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
    controller.current = made
    latest.current?.onSpan(span_ms)
    const notify = () => made.received()
    listeners.add(notify)
    return () => {
      listeners.delete(notify)
      made.close()
      controller.current = null
    }
  }, [store, listeners])
  return controller
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

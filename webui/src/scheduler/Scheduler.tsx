// What ran when, what waited, what the plan is and how it changed.

import styles from './Scheduler.module.css'

import { useEffect, useMemo, useState } from 'preact/hooks'

import { ErrorBoundary } from '../ui/ErrorBoundary'
import { Changes } from './Changes'
import { Costs } from './Costs'
import { PlanTable } from './PlanTable'
import { Recorder } from './Recorder'
import { TimelineCard } from './TimelineCard'
import type { TimelineFeed } from './timelineFeed'
import { TimelineStore } from './timelineStore'
import type { BoxState } from '../api/types'

export interface SchedulerProps {
  state: BoxState
  feed: TimelineFeed
}

export function Scheduler({ state, feed }: SchedulerProps) {
  const store = useMemo(() => new TimelineStore(), [])
  const [request, setRequest] = useState<number | null>(null)
  const listeners = useMemo(() => new Set<() => void>(), [])
  useEffect(
    () =>
      feed.follow((update) => {
        store.take(update)
        for (const notify of listeners) notify()
      }),
    [feed, store, listeners],
  )
  return (
    <main class={`live-data ${styles.page}`} aria-label="Scheduler">
      <ErrorBoundary what="The timeline">
        <TimelineCard store={store} listeners={listeners} box={state.box} onRequest={setRequest} />
      </ErrorBoundary>
      <div class={styles.cards}>
        <div class={styles.column}>
          <ErrorBoundary what="The plan">
            <PlanTable cameras={state.cameras} planner={state.box.planner} />
          </ErrorBoundary>
          <ErrorBoundary what="Changes of plan">
            <Changes changes={store.changes} offset_ms={store.unixOffset_ms} />
          </ErrorBoundary>
        </div>
        <div class={styles.column}>
          <ErrorBoundary what="Decision times">
            <Costs box={state.box} decision={store.decision_us} />
          </ErrorBoundary>
          <ErrorBoundary what="The journal">
            <Recorder ready={state.box.ready} request={request} />
          </ErrorBoundary>
        </div>
      </div>
    </main>
  )
}

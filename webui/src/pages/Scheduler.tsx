// What ran when, what waited, what the plan is and how it changed.

import styles from './Scheduler.module.css'

import { useEffect, useMemo, useState } from 'preact/hooks'

import { Guard } from '../components/Guard'
import { Changes } from '../components/scheduler/Changes'
import { Costs } from '../components/scheduler/Costs'
import { PlanTable } from '../components/scheduler/PlanTable'
import { Recorder } from '../components/scheduler/Recorder'
import { TimelineCard } from '../components/scheduler/TimelineCard'
import type { TimelineFeed } from '../timeline/feed'
import { TimelineStore } from '../timeline/store'
import type { BoxState } from '../types'

export interface SchedulerProps {
  state: BoxState
  feed: TimelineFeed
}

export function Scheduler({ state, feed }: SchedulerProps) {
  const store = useMemo(() => new TimelineStore(), [])
  const [asked, ask] = useState<number | null>(null)
  const listeners = useMemo(() => new Set<() => void>(), [])
  useEffect(
    () =>
      feed.follow((news) => {
        store.take(news)
        for (const heard of listeners) heard()
      }),
    [feed],
  )
  return (
    <main class={`live-data ${styles.page}`} aria-label="Scheduler">
      <Guard what="The timeline">
        <TimelineCard store={store} listeners={listeners} box={state.box} onRequest={ask} />
      </Guard>
      <div class={styles.cards}>
        <div class={styles.column}>
          <Guard what="The plan">
            <PlanTable cameras={state.cameras} planner={state.box.planner} />
          </Guard>
          <Guard what="Changes of plan">
            <Changes changes={store.changes} offset_ms={store.unixOffset_ms} />
          </Guard>
        </div>
        <div class={styles.column}>
          <Guard what="Decision times">
            <Costs box={state.box} decision={store.decision_us} />
          </Guard>
          <Guard what="The flight recorder">
            <Recorder ready={state.box.ready} request={asked} />
          </Guard>
        </div>
      </div>
    </main>
  )
}

// The last minute of the timeline, built from the box's updates. Pure.

import type { Batch, DecisionTimes, DroppedRequest, PlanChange, PlanRun, QueueEntry, TimelineUpdate } from './timeline'

export const WINDOW_MS = 60_000
const CHANGES_KEPT = 200
/** Old entries go in lots: moving an array for each would cost more. */
const LOT = 64

/** When a batch began on its executor, as far as is known. */
export function startOf(batch: Batch): number {
  return batch.started_ms ?? batch.ordered_ms
}

/** When its executor was done; null while it runs. */
export function endOf(batch: Batch): number | null {
  return batch.ended_ms ?? batch.answered_ms
}

/** How much time its most urgent request had left at an instant; null without requests. */
export function leastSlack(batch: Batch, at_ms: number): number | null {
  if (batch.requests.length === 0) return null
  return Math.min(...batch.requests.map(({ deadline_ms }) => deadline_ms - at_ms))
}

/** How a batch went, worst first: `failed` (a request got no answer), `late`, `on_time`, or `running`. */
export function verdictOf(batch: Batch): 'failed' | 'late' | 'on_time' | 'running' | 'sample' {
  if (batch.answered_ms === null) return 'running'
  if (batch.kind === 'sample') return 'sample'
  const outcomes = batch.requests.map(({ outcome }) => outcome)
  if (outcomes.some((outcome) => outcome !== 'on_time' && outcome !== 'late')) return 'failed'
  return outcomes.includes('late') ? 'late' : 'on_time'
}

export class TimelineStore {
  /** The box's clock at the last update, and the wall clock's lead over it. */
  now_ms = 0
  unixOffset_ms = 0
  failure = ''
  executors: readonly string[] = []
  variants: readonly string[] = []
  /** Batches that are over, by executor, in order. */
  lanes = new Map<string, Batch[]>()
  running: readonly Batch[] = []
  drops: DroppedRequest[] = []
  changes: PlanChange[] = []
  plans: PlanRun[] = []
  queues: QueueEntry[] = []
  decision_us: DecisionTimes | null = null

  /** Add an update; one that begins again replaces everything. */
  take(update: TimelineUpdate): void {
    if (update.begins) this.clear()
    this.now_ms = update.now_ms
    this.unixOffset_ms = update.unix_ms - update.now_ms
    this.failure = update.failure
    this.executors = update.executors
    this.variants = update.variants
    for (const batch of update.batches) {
      const lane = this.lanes.get(batch.executor)
      if (lane) lane.push(batch)
      else this.lanes.set(batch.executor, [batch])
    }
    this.running = update.running
    this.drops.push(...update.drops)
    this.changes.push(...update.changes)
    this.plans.push(...update.plans)
    this.queues.push(...update.queues)
    if (update.decision_us !== undefined) this.decision_us = update.decision_us
    this.forget(update.now_ms - WINDOW_MS)
  }

  /** Return a copy that later updates do not change. */
  frozen(): TimelineStore {
    const copy = new TimelineStore()
    Object.assign(copy, this)
    copy.lanes = new Map([...this.lanes].map(([executor, lane]) => [executor, [...lane]]))
    copy.drops = [...this.drops]
    copy.changes = [...this.changes]
    copy.plans = [...this.plans]
    copy.queues = [...this.queues]
    return copy
  }

  /** The batch with this number, over or running. */
  find(number: number): Batch | null {
    for (const lane of this.lanes.values()) {
      const found = lane.findLast(({ batch }) => batch === number)
      if (found) return found
    }
    return this.running.find(({ batch }) => batch === number) ?? null
  }

  /** All batches of all executors in the order of their start, those that run included. */
  inOrder(): Batch[] {
    return [...[...this.lanes.values()].flat(), ...this.running].sort((a, b) => startOf(a) - startOf(b))
  }

  private clear(): void {
    this.lanes.clear()
    this.drops = []
    this.changes = []
    this.plans = []
    this.queues = []
    this.decision_us = null
  }

  private forget(horizon_ms: number): void {
    for (const lane of this.lanes.values()) trim(lane, (batch) => (batch.answered_ms ?? horizon_ms) < horizon_ms)
    trim(this.drops, ({ at_ms }) => at_ms < horizon_ms)
    trim(this.plans, ({ answered_ms }) => answered_ms < horizon_ms)
    trim(this.queues, ([at_ms]) => at_ms < horizon_ms)
    if (this.changes.length > CHANGES_KEPT + LOT) this.changes.splice(0, this.changes.length - CHANGES_KEPT)
  }
}

function trim<Item>(items: Item[], isOld: (item: Item) => boolean): void {
  if (items.length <= LOT || !isOld(items[LOT] as Item)) return
  const kept = items.findIndex((item) => !isOld(item))
  items.splice(0, kept === -1 ? items.length : kept)
}

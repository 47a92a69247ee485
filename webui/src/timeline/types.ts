// What the box sends of its timeline, as docs/http-api.md says. Instants are milliseconds of the box's own clock.

export interface BatchRequest {
  request: number
  camera: string
  captured_ms: number
  arrived_ms: number
  deadline_ms: number
  /** `on_time`, `late`, or the reason of a drop; null while it runs, and for samples. */
  outcome: string | null
}

export interface Batch {
  batch: number
  /** A sample is a finished request run once more, to learn how long its like take. */
  kind: 'batch' | 'sample'
  executor: string
  variant: string
  size: number
  padded_size: number
  ordered_ms: number
  started_ms: number | null
  ended_ms: number | null
  answered_ms: number | null
  expected_ms: number | null
  requests: readonly BatchRequest[]
}

export interface DroppedRequest {
  at_ms: number
  request: number
  camera: string
  variant: string | null
  captured_ms: number
  arrived_ms: number
  deadline_ms: number
  reason: string
}

export interface Told {
  variant: string
  width_px: number
  height_px: number
  rate_hz: number
}

export interface PlanChange {
  at_ms: number
  camera: string
  before: Told | null
  after: Told
  reason: string
}

export interface PlanRun {
  asked_ms: number
  answered_ms: number
  utilisation: number
}

/** The longest each variant's queue was, from an instant to that of the next entry. */
export type QueueEntry = readonly [at_ms: number, longest: Readonly<Record<string, number>>]

export interface DecisionTimes {
  count: number
  p50: number
  p99: number
  max: number
}

/** What is new since the last one; `begins` in the first, which goes back a minute. */
export interface TimelineNews {
  type: 'timeline'
  begins: boolean
  now_ms: number
  unix_ms: number
  failure: string
  executors: readonly string[]
  variants: readonly string[]
  batches: readonly Batch[]
  running: readonly Batch[]
  drops: readonly DroppedRequest[]
  changes: readonly PlanChange[]
  plans: readonly PlanRun[]
  queues: readonly QueueEntry[]
  decision_us?: DecisionTimes | null
}

const PREFIX = '{"type":"timeline"'

/** News of the timeline, or null for any other text. */
export function parseTimeline(text: string): TimelineNews | null {
  if (!text.startsWith(PREFIX)) return null
  try {
    const news = JSON.parse(text) as Partial<TimelineNews>
    return Array.isArray(news.batches) && typeof news.now_ms === 'number' ? (news as TimelineNews) : null
  } catch {
    return null
  }
}

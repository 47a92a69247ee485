// What the box sends to the page, as docs/http-api.md says. Values not known yet are null.

/** A share of a whole, by name: `{"queue": 3}`. */
export type ByReason = Readonly<Record<string, number>>

/** How many frames ended how; since the box started. */
export interface Counts {
  captured: number
  accepted: number
  on_time: number
  late: number
  pending: number
  dropped: ByReason
  /** Of the answers: 1 each on time, less by a later deadline. */
  utility: number
  /** Answers from another variant than the one the camera had been advised of when it sent them. */
  mismatches: number
}

/** Milliseconds of one percentile, per stage of a frame's way; each is that stage's own percentile. */
export interface LatencySplit {
  network: number | null
  queue: number | null
  inference: number | null
  return: number | null
  total: number | null
}

/** What the box last told a camera to send, and why. */
export interface Advice {
  variant: string
  width_px: number
  height_px: number
  rate_hz: number
  quality: number
  bandwidth_bps: number
  reason: string
}

/** A history: [seconds before now (negative), value], oldest first. */
export type History = ReadonlyArray<readonly [number, number]>

export interface Link {
  bandwidth_bps: number | null
  /** The share of it that frames get in bad seconds; null until that is known. */
  throughput_stability: number | null
  rtt_ms: number | null
  clock_error_ms: number | null
  history: History
}

/** Executors that work apart, at these variants. */
export interface Group {
  executors: readonly string[]
  variants: readonly string[]
}

export interface Camera {
  id: string
  app: string
  family: string
  connected: boolean
  /** When and why it went; null while it is there. */
  left: { at_ms: number; why: string } | null
  /** From its hello to the arrival of its first frame; null before that. */
  first_frame_s: number | null
  agent: string | null
  address: string | null
  /** Whose cameras share its uplink, and whether the box found that out; null: it has its own. */
  site: { name: string; inferred: boolean } | null
  slo_ms: number
  /** Deadlines after that one: ms, and the utility of an answer by it. */
  later: ReadonlyArray<readonly [number, number]>
  rate_hz: number
  width_px: number
  height_px: number
  advice: Advice | null
  on_time_share: number | null
  /** Frames dropped over the window, by reason. */
  dropped_in_window: ByReason
  fps: number | null
  latency_ms: { p50: LatencySplit | null; p99: LatencySplit | null } | null
  link: Link | null
  counts: Counts
  variant_history: History
}

export interface Executor {
  id: string
  provider: string
  device: string
  /** What a person should know about it, such as why it is not the accelerator; may be empty. */
  note?: string
  /** Threads it computes with on a CPU, and the cores they are pinned to; none: any. */
  threads: number
  cores: readonly number[]
  /** Families that run there. */
  families: readonly string[]
  /** What each other executor that runs adds to a batch, as a share of its time; null: there is none. */
  interference: number | null
  utilisation: number | null
  batch_size_mean: number | null
  running: string | null
  state: 'up' | 'opening' | 'waiting' | 'wedged'
  /** How often it came back after it had been lost. */
  restarts: number
  losses: Readonly<Record<string, number>>
  abandoned_threads: number
  /** Until it is opened anew, in seconds; null while it does not wait for that. */
  retry_s: number | null
  last_error: { at_ms: number, text: string } | null
}

/** What models share of an executor's memory, where that is limited. */
export interface Memory {
  executor: string
  limit_bytes: number
  used_bytes: number
  resident: ReadonlyArray<{ weights: string; size_bytes: number }>
  loading: string | null
  loads: number
  /** Variants that a plan newly named and that were in memory, or not. */
  hits: number
  misses: number
  hit_ratio: number | null
  switch_ms: number | null
}

/** Where events are sent to, and how that is going. */
export interface Destination {
  kind: 'mqtt' | 'webhook'
  name: string
  /** Null before the first attempt. */
  connected: boolean | null
  queued: number
  sent: number
  /** Events that were lost, by reason. */
  dropped: ByReason
  last_error: { at_ms: number; text: string } | null
}

export interface Percentiles {
  p50: number
  p99: number
}

/** What batches of one take: measured of an application's recent requests, by the profile, and as expected. */
export interface ApplicationTimes {
  app: string
  variant: string
  executor: string
  count: number
  /** Null where it has not run since the start: then it is expected by what was learned before. */
  measured_ms: Percentiles | null
  profile_ms: Percentiles
  expected_ms: Percentiles
}

export interface BoxEvent {
  at_ms: number
  level: string
  camera: string | null
  text: string
}

export interface Box {
  name: string
  version: string
  ready: boolean
  ready_reason: string
  uptime_s: number
  family: string
  labels: readonly string[]
  executors: readonly Executor[]
  applications: readonly ApplicationTimes[]
  /** Empty unless the memory is limited. */
  memory: readonly Memory[]
  queue_length: number | null
  planner: { last_ms: number | null; age_s: number | null; runs: number; groups: readonly Group[] } | null
  decision_us: { p50: number | null; p99: number | null } | null
  loop_lag_ms: { p50: number | null; p99: number | null; max: number | null } | null
  window_s: number
  counts: Counts
  destinations: readonly Destination[]
  events: readonly BoxEvent[]
}

export interface BoxState {
  type: 'state'
  now_ms: number
  box: Box
  cameras: readonly Camera[]
}

export interface Detection {
  label: string
  score: number
  /** x1, y1, x2, y2 in pixels of the frame header's width_px x height_px. */
  box: readonly [number, number, number, number]
}

/** What the page may ask of the box; without `max_hz`, the box's own rate. */
export interface Watch {
  type: 'watch'
  max_hz?: number
  /** Only these cameras' frames; without it, those of all. */
  cameras?: readonly string[]
  /** Also the timeline, from a minute ago on. */
  timeline?: boolean
}

/** The JSON header of a binary message. */
export interface FrameHeader {
  camera: string
  frame: number
  width_px: number
  height_px: number
  variant: string | null
  outcome: string
  total_ms: number | null
  detections: readonly Detection[]
}

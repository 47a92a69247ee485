// Written by webui/generate_types.py from the box's OpenAPI document: do not edit.

export type AccuracyReport = {
  kind: 'mAP' | 'F1'
  standard_error: number
  source: string
  pictures: number
  measured_at_ms: number
  details: Readonly<Record<string, number>>
}

export type Addresses = {
  /** The box listens for its own machine only */
  only_here: boolean
  /** It speaks TLS there: https:// and wss:// lead to it */
  tls: boolean
  /** host:port under which other machines reach the box, the most likely first */
  addresses: ReadonlyArray<string>
}

export type Advice = {
  variant: string
  width_px: number
  height_px: number
  rate_hz: number
  quality: number
  bandwidth_bps: number
  reason: string
}

export type AdvisedSize = {
  variant: string
  width_px: number
  height_px: number
  rate_hz: number
}

export type AppLatency = {
  app: string
  variant: string
  executor: string
  count: number
  measured_ms: Percentiles | null
  profile_ms: Percentiles
  expected_ms: Percentiles
}

export type Assignment = {
  camera: string
  variant: string
  rate_hz: number
  quality: number
  served: boolean
  reason: string
  limit: Limit | null
  remedies: ReadonlyArray<Remedy>
}

export type AttributeLabel = {
  label: string
  score: number
}

export type Batch = {
  batch: number
  kind: 'batch' | 'sample'
  executor: string
  variant: string
  size: number
  padded_size: number
  threads: number | null
  ordered_ms: number
  started_ms: number | null
  ended_ms: number | null
  answered_ms: number | null
  expected_ms: number | null
  requests: ReadonlyArray<BatchRequest>
}

export type BatchPercentiles = {
  p50: number
  p99: number
  p90: number
}

export type BatchRequest = {
  request: number
  camera: string
  frame: number | null
  stage: string | null
  captured_ms: number
  arrived_ms: number
  deadline_ms: number
  outcome: 'on_time' | 'late' | 'queue' | 'failed' | 'departed' | 'shutdown' | null
}

export type BatchTimes = {
  executor: string
  variant: string
  batch_size: number
  count: number
  measured_ms: BatchPercentiles
  profile_ms: BatchPercentiles
  factor: number
}

export type BoxEvent = {
  at_ms: number
  level: 'info' | 'warning' | 'error'
  camera: string | null
  text: string
  moves: number
  since_ms: number | null
}

export type BoxState = {
  name: string
  version: string
  ready: boolean
  ready_reason: string
  uptime_s: number
  family: string
  labels: ReadonlyArray<string>
  /** Every detector was trained on synthetic pictures: none is for real cameras */
  only_synthetic: boolean
  /** There may be other boxes: GET /v1/fleet */
  in_fleet: boolean
  executors: ReadonlyArray<Executor>
  devices: ReadonlyArray<Device>
  applications: ReadonlyArray<AppLatency>
  latencies: ReadonlyArray<BatchTimes>
  memory: ReadonlyArray<ModelMemory>
  queue_length: number
  planner: PlannerState
  decision_us: Percentiles | null
  loop_lag_ms: LoopLagPercentiles | null
  energy: ReadonlyArray<EnergySource>
  window_s: number
  counts: Counts
  refused: Readonly<Record<string, number>>
  destinations: ReadonlyArray<Destination>
  events: ReadonlyArray<BoxEvent>
}

export type Camera = {
  id: string
  connected: boolean
  first_seen_ms: number | null
  last_seen_ms: number | null
  requested: RequestedSettings
  origins: SettingOrigins
  overrides: Overrides
  versions: SettingVersions
  in_force: InForce | null
  state: CameraState | null
  /** Where the box fetches its pictures; null: it connects itself */
  source: SourceDocument | null
}

export type CameraCascade = {
  name: string
  small: string
  large: string
  /** Whether the large model is the second part of the small one's network */
  continues: boolean
  /** Pictures with a greater expected loss are sent on to the large model */
  threshold: number
  /** Whether the plan sets the threshold, by the time there is */
  planned: boolean
  /** The share of the last pictures that this threshold sends on; of few, where it was fitted */
  expected_share: number
  /** F1 of all answers against the large model's to expect of the last pictures */
  expected_agreement: number
  compared: CascadeComparison | null
  /** Answers of the small model that it was sure enough of */
  kept: number
  /** Answers of the large model */
  sent_on: number
  /** Answers of the small model, the large one being too late */
  missed: number
  /** Sent on, missed ones included */
  share: number | null
  /** The share saved of the execution time of the large model, or of both parts of a network */
  saving: number | null
}

export type CameraPipeline = {
  name: string
  /** Answers without some stage for some object */
  partial: number
  stages: ReadonlyArray<CameraStage>
}

export type CameraSite = {
  name: string
  inferred: boolean
}

export type CameraStage = {
  name: string
  family: string
  after: ReadonlyArray<string>
  /** Crops; 0 of the first stage */
  answered: number
  /** Objects whose track was known */
  remembered: number
  /** Crops, by reason */
  dropped: Readonly<Record<string, number>>
}

export type CameraState = {
  id: string
  app: string
  family: string
  pipeline: CameraPipeline | null
  connected: boolean
  first_frame_s: number | null
  /** How long ago its last frame came; null: none has come */
  last_frame_s: number | null
  left: Departure | null
  agent: string
  address: string | null
  site: CameraSite | null
  slo_ms: number
  later: ReadonlyArray<readonly [number, number]>
  rate_hz: number
  width_px: number
  height_px: number
  advice: Advice | null
  /** What a person can do to get more than the advice gives */
  remedies: ReadonlyArray<Remedy>
  grade: 'good' | 'reduced' | 'strained' | 'failing' | 'lost' | 'waiting' | 'gone'
  /** Why its source gives no pictures; null: it does, or nobody knows */
  trouble: string | null
  on_time_share: number | null
  late_in_window: number
  dropped_in_window: Readonly<Record<string, number>>
  fps: number
  latency_ms: {
    p50: LatencyParts
    p99: LatencyParts
  } | null
  link: Link
  counts: Counts
  cascade: CameraCascade | null
  tracking: CameraTracking | null
  variant_history: ReadonlyArray<readonly [number, number]>
}

export type CameraTracking = {
  tracks: number
  zones: ReadonlyArray<ZoneState>
  lines: ReadonlyArray<LineState>
}

export type CascadeComparison = {
  /** The last pictures that both models have answered */
  pictures: number
  /** 1 - F1 of the small model, as the decider says */
  expected_loss: number
  /** 1 - F1 of the small model against the large one */
  measured_loss: number
}

export type CocoAnnotation = {
  id: number
  image_id: number
  category_id: number
  bbox: readonly [number, number, number, number]
  area: number
  iscrowd: 0
  score: number
  /** What classifiers say, by attribute */
  attributes?: Readonly<Record<string, string>>
  /** What the later stages of a pipeline say about it, by the stage's name */
  stages?: Readonly<Record<string, StageFindings>>
}

export type CocoAnswer = {
  images: ReadonlyArray<CocoImage>
  annotations: ReadonlyArray<CocoAnnotation>
  categories: ReadonlyArray<CocoCategory>
  info: CocoInfo
}

export type CocoCategory = {
  id: number
  name: string
}

export type CocoImage = {
  id: number
  width: number
  height: number
}

export type CocoInfo = {
  variant: string
  outcome: 'on_time' | 'late'
  timing_ms: InferTiming
  /** Stages that some object was not answered by in time: the answer is partial */
  missing?: ReadonlyArray<string>
  /** With a cascade: whether the objects are the small model's (kept), the large one's (sent_on), or the small one's because the large one was too late (missed) */
  cascade?: 'kept' | 'sent_on' | 'missed'
}

export type ConfigKey = {
  /** Section and key; of sections that repeat, with a number from 0 */
  key: string
  /** What is in force, with what is left empty filled in */
  value: unknown
  default: unknown
  origin: 'default' | 'file' | 'environment' | 'option' | 'stored'
  /** Its value is not shown, or of a URL only scheme and host */
  secret: boolean
  expected: string
  doc: string
}

export type Counts = {
  captured: number
  accepted: number
  on_time: number
  late: number
  pending: number
  dropped: Readonly<Record<string, number>>
  utility: number
  mismatches: number
}

export type DecodingDocument = {
  /** Pictures that were due since the start, used or not */
  pictures: number
  /** Those that were scaled and given to the core */
  used: number
  /** Those that the motion gate left out */
  still: number
  /** Processor time of reading and decoding, for each picture that was due */
  decode_ms: number | null
  /** Processor time of scaling and encoding, for each picture that was used */
  convert_ms: number | null
  /** Processor cores that it takes all in all, of late */
  cores: number | null
}

export type Departure = {
  at_ms: number
  why: string
}

export type Destination = {
  kind: 'mqtt' | 'webhook'
  name: string
  connected: boolean | null
  queued: number
  sent: number
  dropped: Readonly<Record<string, number>>
  last_error: LastError | null
}

export type Detection = {
  label: string
  label_id: number
  score: number
  box: readonly [number, number, number, number]
  /** What the later stages of a pipeline say about it, by the stage's name */
  stages?: Readonly<Record<string, StageFindings>>
  /** The object's number; only for frames of a camera that is tracked */
  track?: number | null
  /** Which of a classifier's attributes the label is of */
  attribute?: string
  /** The picture's embedding, of length 1, from embedding models */
  embedding?: ReadonlyArray<number>
}

export type Device = {
  device: string
  executors: ReadonlyArray<string>
  concurrent_batches: number
  throughput_gains: ReadonlyArray<number>
  reason: string
}

export type DroppedRequest = {
  at_ms: number
  request: number
  camera: string
  frame: number | null
  stage: string | null
  variant: string | null
  captured_ms: number
  arrived_ms: number
  deadline_ms: number
  reason: 'queue' | 'infeasible' | 'invalid' | 'overload' | 'failed' | 'departed' | 'shutdown'
}

export type EnergySource = {
  source: string
  total_j: number
  power_w: number | null
}

export type Event = {
  id: number
  at_ms: number
  level: 'info' | 'warning' | 'error'
  camera: string | null
  text: string
}

export type Executor = {
  state: 'up' | 'opening' | 'waiting' | 'wedged'
  restarts: number
  losses: Readonly<Record<string, number>>
  abandoned_threads: number
  retry_s: number | null
  last_error: LastError | null
  id: string
  /** Empty: it is elsewhere, and was not there since the box's start */
  provider: string
  device: string
  note: string
  threads: number
  cores: ReadonlyArray<number>
  families: ReadonlyArray<string>
  interference: number | null
  utilisation: number
  threads_mean: number | null
  core_seconds: number | null
  batch_size_mean: number | null
  running: string | null
}

export type ExplainedOption = {
  variant: string
  /** mAP@0.5:0.95, or the measure named in `accuracy_report` */
  accuracy: number
  /** The accuracy was not measured: only the order of variants is meaningful */
  accuracy_assumed: boolean
  /** How its accuracy was measured on this box */
  accuracy_report: AccuracyReport | null
  width_px: number
  height_px: number
  frame_bytes: number
  needed_bps: number | null
  needed_ms: number
  left_ms: number
  verdict: 'chosen' | 'smaller' | 'contended' | 'infeasible' | 'not_yet' | 'inaccurate' | 'no_gain' | 'exceeds_source' | 'exceeds_stage'
  why: string
  limit: Limit | null
  remedies: ReadonlyArray<Remedy>
}

export type Family = {
  name: string
  task: 'detect' | 'classify' | 'embed'
  licence: string
  description: string
  labels: ReadonlyArray<string>
  /** What a classifier says of a picture, if it is more than one thing; `labels` has the labels of all in this order */
  attributes: ReadonlyArray<ModelAttribute>
  /** Numbers of an embedding; null: the family gives none */
  embedding_length: number | null
  imported: {
    layout: string
    sources: ReadonlyArray<string>
    remarks: ReadonlyArray<string>
  } | null
  variants: ReadonlyArray<Variant>
}

export type FleetBoxes = {
  /** This box, then the others that are up. */
  boxes: ReadonlyArray<{
    /** Its name. */
    box: string
    /** Where cameras reach it. */
    address: string
    /** SHA-256 of its certificate. */
    fingerprint: string | null
    /** What its cameras need at their smallest variants, as a share of what it may plan. */
    load: number
    /** Frames/s that would be a load of 1, by model. */
    services: Readonly<Record<string, number>>
    cameras: number
    cameras_max: number
    /** Whether it takes no cameras: it stops, or is not ready. */
    draining: boolean
    /** Whether it has begun to serve; one that is draining and ready is about to stop. */
    ready: boolean
    version: string
  }>
  /** Where no box gives a report, and why. */
  left_out: ReadonlyArray<{
    address: string
    reason: string
  }>
}

export type FoundCamera = {
  /** What it calls itself; empty: it does not say */
  name: string
  host: string
  port: number
  /** Why it does not tell its streams; empty: it does */
  why: string
  /** The largest first */
  streams: ReadonlyArray<FoundStream>
}

export type FoundCameras = {
  cameras: ReadonlyArray<FoundCamera>
}

export type FoundStream = {
  /** Its address, without user and password */
  url: string
  codec: string
  width_px: number
  height_px: number
}

export type Group = {
  executors: ReadonlyArray<string>
  variants: ReadonlyArray<string>
  steal_budget_ms: number
}

export type History = {
  camera: string | null
  from_ms: number
  to_ms: number
  segments: ReadonlyArray<{
    level: 'second' | 'minute' | 'hour'
    from_ms: number
    step_ms: number
    points: number
  }>
  at_ms: ReadonlyArray<number>
  covered_ms: ReadonlyArray<number | null>
  connected: ReadonlyArray<number | null>
  captured: ReadonlyArray<number | null>
  accepted: ReadonlyArray<number | null>
  on_time: ReadonlyArray<number | null>
  late: ReadonlyArray<number | null>
  mismatches: ReadonlyArray<number | null>
  dropped: Readonly<Record<string, ReadonlyArray<number | null>>>
  variants: Readonly<Record<string, ReadonlyArray<number | null>>>
  zones: Readonly<Record<string, ReadonlyArray<number | null>>>
  lines: Readonly<Record<string, HistoryCrossings>>
  classes: Readonly<Record<string, ReadonlyArray<number | null>>>
  fps: ReadonlyArray<number | null>
  width_px: ReadonlyArray<number | null>
  latency_ms: {
    p50: HistoryLatency
    p99: HistoryLatency
  }
  received_bps: ReadonlyArray<number | null>
  bandwidth_bps: {
    measured: HistoryBandwidth
    estimated: HistoryBandwidth
  }
}

export type HistoryBandwidth = {
  mean: ReadonlyArray<number | null>
  min: ReadonlyArray<number | null>
  max: ReadonlyArray<number | null>
}

export type HistoryBoxes = {
  boxes: ReadonlyArray<{
    box: string
    address: string
    /** Where its history begins. */
    from_ms: number
    /** Where it ends. */
    to_ms: number
  }>
  /** Where no box says whether it has any, and why. */
  unanswered: ReadonlyArray<{
    address: string
    reason: string
  }>
}

export type HistoryCrossings = {
  in: ReadonlyArray<number | null>
  out: ReadonlyArray<number | null>
}

export type HistoryLatency = {
  network: ReadonlyArray<number | null>
  queue: ReadonlyArray<number | null>
  inference: ReadonlyArray<number | null>
  total: ReadonlyArray<number | null>
  return: ReadonlyArray<number | null>
}

export type InForce = {
  family: string
  app: string
  slo_ms: number
  later: ReadonlyArray<readonly [number, number]>
  rate_hz: number
  min_rate_hz: number
  min_accuracy: number
  width_px: number
  height_px: number
  site: string | null
  pipeline: string | null
}

export type InferAnswer = {
  width_px: number
  height_px: number
  detections: ReadonlyArray<Detection>
  variant: string
  outcome: 'on_time' | 'late'
  timing_ms: InferTiming
  /** Stages that some object was not answered by in time: the answer is partial */
  missing?: ReadonlyArray<string>
  /** With a cascade: whether the objects are the small model's (kept), the large one's (sent_on), or the small one's because the large one was too late (missed) */
  cascade?: 'kept' | 'sent_on' | 'missed'
}

export type InferTiming = {
  network: number
  queue: number
  inference: number
  total: number
  batch_size: number
  return: number
}

export type IssuedToken = {
  id: string
  name: string
  scope: 'camera' | 'metrics' | 'viewer' | 'operator' | 'admin'
  camera: string | null
  created_ms: number
  last_used_ms: number | null
  /** Its text, which is told this once */
  token: string
}

export type Job = {
  id: number
  kind: 'profile' | 'import'
  family: string
  state: 'running' | 'done' | 'failed'
  /** Present step; after the end, the result */
  text: string
  /** How much of it is done */
  share: number
  started_ms: number
  ended_ms: number | null
  /** Remarks about the result */
  remarks: ReadonlyArray<string>
  /** Why it failed */
  problem: Problem | null
}

export type LastError = {
  at_ms: number
  text: string
}

export type LatencyParts = {
  network: number
  queue: number
  inference: number
  return: number
  total: number
}

export type Limit = {
  resource: 'uplink' | 'deadline' | 'waiting' | 'executors'
  missing: number
  unit: string
  gain: number
  price: number
  of: string
}

export type Line = {
  name: string
  /** Its ends; in is from the left to the right of who looks from the first to the second */
  points: ReadonlyArray<readonly [number, number]>
  /** Classes that count; none: all */
  classes?: ReadonlyArray<string>
}

export type LineState = {
  name: string
  /** Its ends; in is from the left to the right of who looks from the first to the second */
  points: ReadonlyArray<readonly [number, number]>
  /** Classes that count; none: all */
  classes: ReadonlyArray<string>
  in: Readonly<Record<string, number>>
  out: Readonly<Record<string, number>>
}

export type Link = {
  bandwidth_bps: number | null
  throughput_stability: number | null
  rtt_ms: number | null
  clock_error_ms: number | null
  history: ReadonlyArray<readonly [number, number]>
}

export type LiveFrameHeader = {
  camera: string
  frame: number
  width_px: number
  height_px: number
  variant: string
  outcome: 'on_time' | 'late' | 'dropped'
  total_ms: number
  detections: ReadonlyArray<Detection>
  /** Stages that some object was not answered by in time */
  missing?: ReadonlyArray<string>
  /** Where the first stage ran, if that was not the box: then there is no picture */
  placement?: 'box' | 'camera'
  /** Whose objects these are */
  cascade?: 'kept' | 'sent_on' | 'missed'
}

export type LoopLagPercentiles = {
  p50: number
  p99: number
  p999: number
  max: number
}

export type ModelAttribute = {
  name: string
  labels: ReadonlyArray<string>
}

export type ModelMemory = {
  executor: string
  limit_bytes: number
  used_bytes: number
  resident: ReadonlyArray<ResidentWeights>
  loading: string | null
  loads: number
  hits: number
  misses: number
  hit_ratio: number | null
  switch_ms: number | null
}

export type Overrides = {
  /** The deadline of each frame; it replaces all deadlines of the hello */
  slo_ms: number | null
  /** At most so many frames a second */
  rate_hz: number | null
  /** The application its frames belong to */
  app: string | null
  /** Run no variant below this accuracy */
  min_accuracy: number | null
  /** A name for the uplink that it shares with other cameras */
  site: string | null
  /** The pipeline that its frames run through; a connected camera connects again */
  pipeline: string | null
  /** The model family that its frames run on, instead of a pipeline; a connected camera connects again */
  family: string | null
  /** Whether its objects are tracked; null: as the configuration says */
  tracking: boolean | null
  /** All its zones; null: those of the configuration */
  zones: ReadonlyArray<Zone> | null
  /** All its lines; null: those of the configuration */
  lines: ReadonlyArray<Line> | null
}

export type Package = {
  name: string
  version: string
  licence: string | null
}

export type Pairing = {
  code: string
  camera: string | null
  expires_s: number
}

export type Percentiles = {
  p50: number
  p99: number
}

export type Pipeline = {
  name: string
  /** Connected cameras that run through it */
  cameras: number
  /** The first one first, each after those it comes after */
  stages: ReadonlyArray<PipelineStage>
}

export type PipelineStage = {
  name: string
  family: string
  task: string
  /** The stages whose objects it is given; none: whole pictures */
  after: ReadonlyArray<string>
  /** Classes of the objects that it is given; none: all */
  labels: ReadonlyArray<string>
  score_min: number
  side_min_px: number
  /** Left, top, right and bottom as shares of the picture's sides; null: all of it */
  region: readonly [number, number, number, number] | null
  margin: number
  /** At most 64 */
  crops_max: number
  order: 'score' | 'area'
  /** The largest variant it runs on; null: any */
  variant: string | null
  /** Whether a tracked object is given to it once, and again if its crop is better */
  once_per_track: boolean
  /** Of a stage that is given the whole pictures that the first one is unsure about */
  cascade: {
    name: string
    small: string
    large: string
    /** Whether it is given features of the first stage, not the picture */
    continues: boolean
    /** null: the plan sets it */
    threshold: number | null
    /** The share of the pictures sent on by it */
    share: number | null
  } | null
}

export type Plan = {
  runs: number
  age_s: number | null
  took_ms: number | null
  utilisation: number | null
  slowdown: Readonly<Record<string, number>>
  groups: ReadonlyArray<Group>
  prices: ReadonlyArray<ResourcePrice>
  assignments: ReadonlyArray<Assignment>
}

export type PlanChange = {
  at_ms: number
  camera: string
  before: AdvisedSize | null
  after: AdvisedSize
  reason: string
}

export type PlannerState = {
  last_ms: number | null
  age_s: number | null
  /** Cameras are connected, and the next plan should be there for 10 s */
  overdue: boolean
  runs: number
  groups: ReadonlyArray<Group>
}

export type Problem = {
  /** URI of the kind of problem; about:blank: the status suffices */
  type: string
  /** The kind of problem in words */
  title: string
  /** The HTTP status */
  status: number
  /** What is wrong in this case, and what to do about it */
  detail: string
  /** The kind of problem as one word, for programs */
  code: string
  /** Only if the box failed: the reference in its log */
  instance?: string
}

export type Remedy = {
  action: 'lower_rate' | 'import_smaller_model' | 'import_better_model' | 'add_executor' | 'improve_uplink' | 'extend_deadline' | 'lower_accuracy' | 'choose_model' | 'check_source' | 'wait'
  text: string
  value: number | null
  camera: string | null
}

export type RequestedSettings = {
  family: string | null
  app: string | null
  slo_ms: number | null
  rate_hz: number | null
  min_rate_hz: number | null
  min_accuracy: number | null
  width_px: number | null
  height_px: number | null
  later: ReadonlyArray<readonly [number, number]>
  site: string | null
  pipeline: string | null
}

export type ResidentWeights = {
  weights: string
  size_bytes: number
}

export type ResourcePrice = {
  resource: 'uplink' | 'deadline' | 'waiting' | 'executors'
  of: ReadonlyArray<string>
  price: number
  unit: string
  cameras: number
}

export type Session = {
  /** What the sender may do; null: a login is needed */
  scope: 'camera' | 'metrics' | 'viewer' | 'operator' | 'admin' | null
  /** The name of its token */
  name: string | null
  /** The only camera that it may be */
  camera: string | null
  /** It may be a camera, by what it sent first or by a browser's pairing */
  may_be_camera: boolean
  /** It is a browser that has logged in */
  logged_in: boolean
  open_to: 'nobody' | 'loopback' | 'everybody'
}

export type SettingOrigins = {
  slo_ms: 'camera' | 'configuration' | 'default' | 'unknown'
  rate_hz: 'camera' | 'configuration' | 'default' | 'unknown'
  min_accuracy: 'camera' | 'configuration' | 'default' | 'unknown'
  app: 'camera' | 'configuration' | 'default' | 'unknown'
  site: 'camera' | 'configuration' | 'default' | 'unknown'
  pipeline: 'camera' | 'configuration' | 'default' | 'unknown'
  family: 'camera' | 'configuration' | 'default' | 'unknown'
}

export type SettingVersions = {
  slo_ms: string
  rate_hz: string
  app: string
  min_accuracy: string
  site: string
  pipeline: string
  family: string
  tracking: string
  zones: string
  lines: string
}

export type SourceDocument = {
  camera: string
  /** Of a network address scheme, host and port only */
  address: string
  /** Where it is configured */
  origin: 'configuration' | 'api'
  state: 'connecting' | 'live' | 'lost' | 'refused'
  /** Since when it is in this state */
  since_ms: number
  /** What is wrong; empty: nothing */
  why: string
  /** The state for people; empty: pictures come */
  text: string
  /** What a person can do about it */
  remedies: ReadonlyArray<Remedy>
  /** How often it was lost since the start */
  losses: number
  /** Attempts to open it since it was last live */
  attempts: number
  /** Empty: not known yet */
  codec: string
  /** software, or the type of the hardware device in use */
  decoder: string
  width_px: number
  height_px: number
  /** Which of its streams is read */
  stream: 'main' | 'sub'
  /** What its pictures' capture times come from */
  capture_times: 'rtcp' | 'arrival' | 'wrong_clock' | 'playback'
  decoding: DecodingDocument
}

export type StageFindings = {
  variant: string
  /** The best class of a classifier with one answer */
  label?: string
  score?: number
  /** The best class of each attribute of a classifier with several */
  attributes?: Readonly<Record<string, AttributeLabel>>
  /** What a detector finds on the object; they may have `stages`, too */
  detections?: ReadonlyArray<{
    label: string
    score: number
    box: readonly [number, number, number, number]
  }>
  embedding?: ReadonlyArray<number>
  /** It was said with an earlier picture of the object */
  remembered?: boolean
}

export type State = {
  type: 'state'
  now_ms: number
  box: BoxState
  cameras: ReadonlyArray<CameraState>
  /** Cameras whose pictures the box fetches */
  sources: ReadonlyArray<SourceDocument>
}

export type Storage = {
  file: string
  database_bytes: number
  /** Size of its write-ahead log */
  log_bytes: number
  /** Free space on its disk; null: the database is in memory */
  free_bytes: number | null
  /** By table */
  rows: Readonly<Record<string, number>>
  /** Rows not written yet */
  waiting_rows: number
  /** Rows lost since the start */
  lost_rows: number
  /** Why writing fails; empty: it works */
  last_error: string
}

export type SupervisionAnswer = {
  image: SupervisionImage
  predictions: ReadonlyArray<SupervisionPrediction>
  variant: string
  outcome: 'on_time' | 'late'
  timing_ms: InferTiming
  /** What classifiers say, by attribute: a label per prediction */
  data?: Readonly<Record<string, ReadonlyArray<string>>>
  /** Stages that some object was not answered by in time: the answer is partial */
  missing?: ReadonlyArray<string>
  /** With a cascade: whether the objects are the small model's (kept), the large one's (sent_on), or the small one's because the large one was too late (missed) */
  cascade?: 'kept' | 'sent_on' | 'missed'
}

export type SupervisionImage = {
  width: number
  height: number
}

export type SupervisionPrediction = {
  x: number
  y: number
  width: number
  height: number
  confidence: number
  class_id: number
  class: string
  /** What the later stages of a pipeline say about it, by the stage's name */
  stages?: Readonly<Record<string, StageFindings>>
}

export type System = {
  edgebox: string
  python: string
  platform: string
  onnxruntime: string | null
  /** Providers in this ONNX Runtime */
  providers: ReadonlyArray<string>
  storage: Storage
  packages: ReadonlyArray<Package>
}

export type TestPicture = {
  /** Of the source's picture; the JPEG may be smaller */
  width_px: number
  height_px: number
  codec: string
  /** software, or the type of the hardware device that decoded it */
  decoder: string
  /** The first picture */
  jpeg: string
}

export type Token = {
  id: string
  name: string
  scope: 'camera' | 'metrics' | 'viewer' | 'operator' | 'admin'
  camera: string | null
  created_ms: number
  last_used_ms: number | null
}

export type Variant = {
  name: string
  width_px: number
  height_px: number
  /** mAP@0.5:0.95, or the measure named in `accuracy_report` */
  accuracy: number
  /** The accuracy was not measured: only the order of variants is meaningful */
  accuracy_assumed: boolean
  /** How its accuracy was measured on this box */
  accuracy_report: AccuracyReport | null
  /** Why cameras are not offered it; null: they are */
  dominated: string | null
  /** Executors that could run it at once */
  in_memory: ReadonlyArray<string>
  sha256: string
  /** Connected cameras that are advised to send for it */
  cameras: number
  /** Milliseconds by executor and batch size, one for each of `quantiles` */
  profiles: Readonly<Record<string, Readonly<Record<string, ReadonlyArray<number>>>>>
}

export type Zone = {
  name: string
  /** Corners in their order, in shares of the picture; sides must not cross */
  points: ReadonlyArray<readonly [number, number]>
  /** Classes that count; none: all */
  classes?: ReadonlyArray<string>
  /** Seconds after which a stay makes an event */
  min_dwell_s?: number
}

export type ZoneState = {
  name: string
  /** Corners in their order, in shares of the picture; sides must not cross */
  points: ReadonlyArray<readonly [number, number]>
  /** Classes that count; none: all */
  classes: ReadonlyArray<string>
  /** Seconds after which a stay makes an event */
  min_dwell_s: number
  counts: Readonly<Record<string, number>>
}

/** What each operation that the page uses answers. */
export interface Answers {
  'GET /v1/addresses': Addresses
  'POST /v1/cameras': Camera
  'POST /v1/sources/discover': FoundCameras
  'POST /v1/sources/test': TestPicture
  'GET /v1/cameras/{id}': Camera
  'GET /v1/cameras/{id}/history/boxes': HistoryBoxes
  'PATCH /v1/cameras/{id}': Camera
  'DELETE /v1/cameras/{id}': null
  'GET /v1/cameras/{id}/explanation': {
    camera: string
    bandwidth_bps: number | null
    options: ReadonlyArray<ExplainedOption>
  }
  'GET /v1/cameras/{id}/history': History
  'GET /v1/config': {
    keys: ReadonlyArray<ConfigKey>
  }
  'GET /v1/events': {
    events: ReadonlyArray<Event>
    next_before: number | null
  }
  'GET /v1/fleet': FleetBoxes
  'GET /v1/jobs': {
    jobs: ReadonlyArray<Job>
  }
  'GET /v1/models': {
    default: string
    quantiles: ReadonlyArray<number>
    families: ReadonlyArray<Family>
  }
  'GET /v1/pipelines': {
    /** For cameras that name neither a pipeline nor a family */
    default: string | null
    pipelines: ReadonlyArray<Pipeline>
  }
  'POST /v1/models/{family}/profile': Job
  'POST /v1/models/{family}/default': null
  'DELETE /v1/models/{family}': null
  'POST /v1/infer': InferAnswer | CocoAnswer | SupervisionAnswer
  'GET /v1/plan': Plan
  'GET /v1/state': State
  'GET /v1/system': System
  'GET /v1/session': Session
  'POST /v1/login': Session
  'POST /v1/logout': null
  'GET /v1/tokens': {
    tokens: ReadonlyArray<Token>
  }
  'POST /v1/tokens': IssuedToken
  'DELETE /v1/tokens/{id}': null
  'POST /v1/pairings': Pairing
  'POST /v1/pair': {
    camera: string
    token?: string
  }
}

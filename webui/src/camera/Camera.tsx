// One camera: live and large, what happened to its frames, what was weighed for it, what is set for it.

import notices from '../ui/notices.module.css'
import styles from './Camera.module.css'

import { useEffect, useRef, useState } from 'preact/hooks'

import { useMay } from '../access/session'
import { EarlierHistory } from './EarlierHistory'
import { Explanation } from './Explanation'
import { Forget } from './Forget'
import { Live } from './Live'
import { Cascade } from './Cascade'
import { PipelineStages } from './PipelineStages'
import { Results } from './Results'
import { Settings } from './Settings'
import { Timelines } from './Timelines'
import { ZoneEditor, type Drawing } from './ZoneEditor'
import { DrawingOverlay, DrawnSoFar } from './DrawingOverlay'
import { origin } from '../overview/CameraTile'
import { Decision } from '../figures/Decision'
import { Events } from '../overview/Events'
import { FrameCounts } from '../figures/FrameCounts'
import { ErrorBoundary } from '../ui/ErrorBoundary'
import { Headline } from '../figures/Headline'
import { HealthIcon } from '../ui/icons'
import { LatencyBars } from '../figures/LatencyBars'
import { bitrate, isKnown, milliseconds, percent, UNKNOWN } from '../ui/format'
import type { FrameDispatcher } from '../live/frameDispatcher'
import { HEALTH_WORD } from '../figures/health'
import type { ShownFrame } from '../api/messages'
import { usePolled } from '../api/polling'
import { withResult, type Result } from './results'
import { hashOf } from '../app/route'
import { SCOPES } from '../app/scopes'
import { Unfetched } from './Unfetched'
import { coresText } from '../add/fetched'
import type { BoxState, Camera as CameraState, Source } from '../api/types'
import type { CameraDocument } from './cameraOverrides'

export interface CameraProps {
  state: BoxState
  dispatcher: FrameDispatcher
  camera: string
  range: string | undefined
  /** The setting that whoever came here wants to change. */
  setting?: string | undefined
}

const KNOWN_PERIOD_MS = 5_000
const EVENTS_PERIOD_MS = 5_000
/** Other pipelines come with a restart of the box only. */
const PIPELINES_PERIOD_MS = 60_000
const EVENTS = 20

/** Nothing of one camera's page is another's. */
export function Camera(props: CameraProps) {
  return <OneCamera key={props.camera} {...props} />
}

function OneCamera({ state, dispatcher, camera: id, range, setting }: CameraProps) {
  const { answer: known, error, put } = usePolled('GET /v1/cameras/{id}', { path: { id } }, KNOWN_PERIOD_MS)
  const { answer: newest } = usePolled('GET /v1/events', { query: { camera: id, limit: EVENTS } }, EVENTS_PERIOD_MS)
  const { answer: offered } = usePolled('GET /v1/pipelines', {}, PIPELINES_PERIOD_MS)
  const pipelines = offered?.pipelines.map(({ name }) => name) ?? []
  const { answer: models } = usePolled('GET /v1/models', {}, PIPELINES_PERIOD_MS)
  const families = models?.families.map(({ name }) => name) ?? []
  const { frame, results } = useFrames(dispatcher, id)
  const drawing = useDrawing()
  const camera = state.cameras.find((one) => one.id === id)
  if (!camera && error?.status === 404) return <Unknown id={id} />
  const source = state.sources.find((one) => one.camera === id)
  const connected = camera?.connected ?? false
  const settings = known?.in_force ?? known?.requested
  const present = { slo_ms: camera?.slo_ms ?? settings?.slo_ms ?? null, rate_hz: camera?.rate_hz ?? settings?.rate_hz ?? null, fetched: source !== undefined }
  return (
    <main class={`live-data ${styles.page}`} aria-label={`Camera ${id}`} data-connected={connected}>
      <Title id={id} camera={camera} source={source} known={known} />
      {error && !known && error.status !== 404 && <p class={`card ${notices.broken}`} role="alert">What the box knows of it cannot be shown: {error.message}</p>}
      {!camera && source && source.remedies.length > 0 && <Unfetched source={source} />}
      {camera && (
        <div class={styles.top}>
          <ErrorBoundary what="The live picture"><Live camera={camera} dispatcher={dispatcher} frame={frame} drawing={drawing.kind && <DrawingOverlay camera={camera} drawing={drawing} />} drawn={drawing.kind && <DrawnSoFar kind={drawing.kind} points={drawing.points} />} /></ErrorBoundary>
          <ErrorBoundary what="The figures"><Figures camera={camera} source={source} window_s={state.box.window_s} /></ErrorBoundary>
        </div>
      )}
      <div class={styles.columns}>
        <div class={styles.column}>
          <ErrorBoundary what="The charts"><Timelines camera={id} range={range} present={present} age_ms={isKnown(known?.first_seen_ms) ? state.now_ms - known.first_seen_ms : Infinity} /></ErrorBoundary>
          <ErrorBoundary what="The history on other boxes"><EarlierHistory camera={id} inFleet={state.box.in_fleet} /></ErrorBoundary>
          <ErrorBoundary what="What the planner considers"><Explanation camera={id} connected={connected} fetched={present.fetched} /></ErrorBoundary>
        </div>
        <div class={styles.column}>
          {camera && known && <ErrorBoundary what="The zones"><ZoneEditor camera={camera} known={known} drawing={drawing} onChanged={put} /></ErrorBoundary>}
          {known && <ErrorBoundary what="The settings"><Settings known={known} connected={connected} wanted={setting} pipelines={pipelines} families={families} onChanged={put} /></ErrorBoundary>}
          <ErrorBoundary what="The results"><Results camera={id} results={results} /></ErrorBoundary>
          {newest && <Events class={styles.events} events={newest.events} />}
        </div>
      </div>
    </main>
  )
}
function useDrawing(): Drawing {
  const [{ kind, points }, setDrawn] = useState<Pick<Drawing, 'kind' | 'points'>>({ kind: null, points: [] })
  return { kind, points, set: (kind, points) => setDrawn({ kind, points }) }
}

function Title({ id, camera, source, known }: { id: string; camera: CameraState | undefined; source: Source | undefined; known: CameraDocument | null }) {
  const may = useMay('operator')
  // One that the configuration file names would be back at the next start: the box refuses to forget it.
  const isForgettable = known !== null && !camera?.connected && source?.origin !== 'configuration'
  const health = camera ? camera.grade : source && source.remedies.length > 0 ? 'lost' : 'gone'
  return (
    <header class={`health-${health} ${styles.title}`}>
      <p><a href={hashOf({ page: 'overview' })}>Cameras</a> <span class="muted" aria-hidden="true">/</span></p>
      <h2>{id}</h2>
      <p class={styles.health}><HealthIcon health={health} />{HEALTH_WORD[health]}</p>
      <p class="muted">{camera ? [origin(camera), camera.agent].filter(Boolean).join(' · ') : [source?.address, seen(known)].filter(Boolean).join(' · ')}</p>
      {may && isForgettable && <Forget camera={id} />}
    </header>
  )
}

function seen(known: CameraDocument | null): string {
  return isKnown(known?.last_seen_ms) ? `last connected ${new Date(known.last_seen_ms).toLocaleString('en-GB')}` : ''
}

interface FiguresProps {
  camera: CameraState
  /** Where the box fetches its pictures; undefined: the camera sends them. */
  source: Source | undefined
  window_s: number
}

function Figures({ camera, source, window_s }: FiguresProps) {
  return (
    <section class={`card health-${camera.grade} ${styles.figures}`} aria-label="Now">
      <Headline camera={camera} window_s={window_s} />
      <Decision camera={camera} reason="large" />
      {camera.pipeline && <PipelineStages {...camera.pipeline} />}
      {camera.cascade && <Cascade {...camera.cascade} />}
      <LatencyBars camera={camera} window_s={window_s} fetched={source !== undefined} />
      {source ? <SourceFigures {...source} /> : <LinkFigures {...camera} />}
      <FrameCounts camera={camera} window_s={window_s} />
    </section>
  )
}

/** What a camera's uplink is estimated to be. */
function LinkFigures({ link }: CameraState) {
  return (
    <dl class={styles.linkFigures}>
      <div><dt>Uplink, estimated</dt><dd data-testid="uplink">{bitrate(link?.bandwidth_bps)}</dd></div>
      <div title="Share of the estimated bandwidth that frames get in bad seconds"><dt>In bad seconds</dt><dd><span data-testid="throughput_stability">{percent(link?.throughput_stability, 0)}</span> of it</dd></div>
      <div title="What a message and its answer take between the camera and the box"><dt>Round trip</dt><dd>{milliseconds(link?.rtt_ms)}</dd></div>
      <div title="How exactly the box knows the camera’s clock, and so when a frame was captured"><dt>Clock known within</dt><dd>{milliseconds(link?.clock_error_ms)}</dd></div>
    </dl>
  )
}

/** What fetching and decoding a camera's stream takes of this box. */
function SourceFigures({ codec, decoder, width_px, height_px, stream, capture_times, decoding }: Source) {
  return (
    <>
      <dl class={styles.linkFigures} data-testid="source-figures">
        <div><dt>{stream === 'sub' ? 'Smaller stream' : 'Stream'}</dt><dd>{codec ? `${codec}, ${width_px} × ${height_px} px` : UNKNOWN}</dd></div>
        <div title="Of the box's processor cores, over the last 10 s: reading, decoding, scaling and encoding"><dt>Decoding takes</dt><dd data-testid="decoding-cores">{coresText(decoding.cores)}</dd></div>
        <div title="Processor time of reading and decoding one picture"><dt>Per picture</dt><dd>{milliseconds(decoding.decode_ms)}{decoder !== 'software' && decoder !== '' && ` with ${decoder}`}</dd></div>
        <div title="Processor time of scaling and encoding, for each picture that is used"><dt>Scaling, if used</dt><dd>{milliseconds(decoding.convert_ms)}</dd></div>
        <div title={CAPTURE_TIMES[capture_times].why}><dt>Capture times from</dt><dd>{CAPTURE_TIMES[capture_times].of}</dd></div>
      </dl>
      {capture_times === 'wrong_clock' && <p class="muted" data-testid="wrong-clock">{CAPTURE_TIMES.wrong_clock.why}</p>}
    </>
  )
}

const CAPTURE_TIMES: Readonly<Record<Source['capture_times'], { of: string; why: string }>> = {
  rtcp: { of: 'the camera', why: 'The camera says in RTCP sender reports when it captured each picture' },
  arrival: { of: 'the arrival', why: 'The camera does not say when it captured a picture: it counts from the arrival, so what the camera takes to encode is not known' },
  wrong_clock: { of: 'the arrival', why: 'The camera’s clock and this box’s do not agree, so its pictures count from their arrival. Set the camera’s clock in its own settings, best by NTP.' },
  playback: { of: 'the playback', why: 'A picture of a file counts from when it is due' },
}

function Unknown({ id }: { id: string }) {
  const may = useMay(SCOPES.add)
  return (
    <main class={notices.empty} aria-label="Unknown camera" data-testid="unknown">
      <h2>This box knows no camera {id}</h2>
      <p>It never connected here, or it was forgotten. If it connects, this page shows it.</p>
      <p><a href={hashOf({ page: 'overview' })}>All cameras</a>{may && <> · <a href={hashOf({ page: 'add' })}>Add a camera</a></>}</p>
    </main>
  )
}

/** A camera's frames as they come: the newest, and the results of the last ones. */
function useFrames(dispatcher: FrameDispatcher, camera: string): { frame: ShownFrame | null; results: readonly Result[] } {
  // Drawn with the states, twice a second: nobody reads faster.
  const kept = useRef<{ frame: ShownFrame | null; results: readonly Result[] }>({ frame: null, results: [] })
  const [, setDrawings] = useState(0)
  useEffect(
    () =>
      dispatcher.follow(camera, (frame) => {
        const first = kept.current?.frame === null
        kept.current = { frame, results: withResult(kept.current?.results ?? [], frame.header, Date.now()) }
        if (first) setDrawings(1)
      }),
    [dispatcher, camera],
  )
  return kept.current ?? { frame: null, results: [] }
}

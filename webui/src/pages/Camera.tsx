// One camera: live and large, what happened to its frames, what was weighed for it, what is set for it.

import notices from '../components/notices.module.css'
import styles from './Camera.module.css'

import { useEffect, useRef, useState } from 'preact/hooks'

import { Considered } from '../components/camera/Considered'
import { Forget } from '../components/camera/Forget'
import { Live } from '../components/camera/Live'
import { Results } from '../components/camera/Results'
import { Settings } from '../components/camera/Settings'
import { Timelines } from '../components/camera/Timelines'
import { origin } from '../components/CameraTile'
import { Decision } from '../components/Decision'
import { Events } from '../components/Events'
import { FrameCounts } from '../components/FrameCounts'
import { Guard } from '../components/Guard'
import { Headline } from '../components/Headline'
import { HealthIcon } from '../components/icons'
import { LatencyBars } from '../components/LatencyBars'
import { bitrate, isKnown, milliseconds, percent } from '../format'
import type { Gallery } from '../gallery'
import { cameraHealth, HEALTH_WORD } from '../health'
import type { ShownFrame } from '../messages'
import { usePolled } from '../polling'
import { withResult, type Result } from '../results'
import { hashOf } from '../route'
import type { BoxEvent, BoxState, Camera as CameraState } from '../types'
import type { CameraDocument } from '../wishes'

export interface CameraProps {
  state: BoxState
  gallery: Gallery
  camera: string
  range: string | undefined
}

const KNOWN_PERIOD_MS = 5_000
const EVENTS_PERIOD_MS = 5_000
const EVENTS = 20

/** Nothing of one camera's page is another's. */
export function Camera(props: CameraProps) {
  return <OneCamera key={props.camera} {...props} />
}

function OneCamera({ state, gallery, camera: id, range }: CameraProps) {
  const address = `v1/cameras/${encodeURIComponent(id)}`
  const { answer: known, error, put } = usePolled<CameraDocument>(address, KNOWN_PERIOD_MS)
  const { answer: told } = usePolled<{ events: readonly BoxEvent[] }>(`v1/events?camera=${encodeURIComponent(id)}&limit=${EVENTS}`, EVENTS_PERIOD_MS)
  const { frame, results } = useFrames(gallery, id)
  const camera = state.cameras.find((one) => one.id === id)
  if (!camera && error?.status === 404) return <Unknown id={id} />
  const connected = camera?.connected ?? false
  const wishes = known?.in_force ?? known?.asked
  const present = { slo_ms: camera?.slo_ms ?? wishes?.slo_ms ?? null, rate_hz: camera?.rate_hz ?? wishes?.rate_hz ?? null }
  return (
    <main class={`live-data ${styles.page}`} aria-label={`Camera ${id}`} data-connected={connected}>
      <Title id={id} camera={camera} known={known} />
      {camera && (
        <div class={styles.top}>
          <Guard what="The live picture"><Live camera={camera} window_s={state.box.window_s} gallery={gallery} frame={frame} /></Guard>
          <Guard what="The figures"><Figures camera={camera} window_s={state.box.window_s} /></Guard>
        </div>
      )}
      <div class={styles.columns}>
        <div class={styles.column}>
          <Guard what="The charts"><Timelines camera={id} range={range} present={present} /></Guard>
          <Guard what="What the planner considers"><Considered camera={id} connected={connected} /></Guard>
        </div>
        <div class={styles.column}>
          {known && <Guard what="The settings"><Settings known={known} connected={connected} onChanged={put} /></Guard>}
          <Guard what="The results"><Results camera={id} results={results} /></Guard>
          {told && <Events class={styles.events} events={told.events} />}
        </div>
      </div>
    </main>
  )
}

function Title({ id, camera, known }: { id: string; camera: CameraState | undefined; known: CameraDocument | null }) {
  const health = camera ? cameraHealth(camera) : 'gone'
  return (
    <header class={`health-${health} ${styles.title}`}>
      <p><a href={hashOf({ place: 'overview' })}>Cameras</a> <span class="muted" aria-hidden="true">/</span></p>
      <h2>{id}</h2>
      <p class={styles.health}><HealthIcon health={health} />{HEALTH_WORD[health]}</p>
      <p class="muted">{camera ? [origin(camera), camera.agent].filter(Boolean).join(' · ') : seen(known)}</p>
      {!camera?.connected && known && <Forget camera={id} />}
    </header>
  )
}

function seen(known: CameraDocument | null): string {
  return isKnown(known?.last_seen_ms) ? `last connected ${new Date(known.last_seen_ms).toLocaleString('en-GB')}` : ''
}

function Figures({ camera, window_s }: { camera: CameraState; window_s: number }) {
  const { link } = camera
  return (
    <section class={`card health-${cameraHealth(camera)} ${styles.figures}`} aria-label="Now">
      <Headline camera={camera} window_s={window_s} />
      <Decision camera={camera} reason="large" />
      <LatencyBars camera={camera} window_s={window_s} />
      <dl class={styles.linkFigures}>
        <div><dt>Uplink, estimated</dt><dd data-testid="uplink">{bitrate(link?.bandwidth_bps)}</dd></div>
        <div><dt>In bad seconds</dt><dd data-testid="throughput_stability">{percent(link?.throughput_stability, 0)}</dd></div>
        <div><dt>Round trip</dt><dd>{milliseconds(link?.rtt_ms)}</dd></div>
        <div><dt>Clock known within</dt><dd>{milliseconds(link?.clock_error_ms)}</dd></div>
      </dl>
      <FrameCounts camera={camera} window_s={window_s} />
    </section>
  )
}

function Unknown({ id }: { id: string }) {
  return (
    <main class={notices.empty} aria-label="Unknown camera" data-testid="unknown">
      <h2>This box knows no camera {id}</h2>
      <p>It never connected here, or it was forgotten. If it connects, this page shows it.</p>
      <p><a href={hashOf({ place: 'overview' })}>All cameras</a> · <a href={hashOf({ place: 'add' })}>Add a camera</a></p>
    </main>
  )
}

/** A camera's frames as they come: the newest, and the results of the last ones. */
function useFrames(gallery: Gallery, camera: string): { frame: ShownFrame | null; results: readonly Result[] } {
  // Drawn with the states, twice a second: nobody reads faster.
  const kept = useRef<{ frame: ShownFrame | null; results: readonly Result[] }>({ frame: null, results: [] })
  const [, drawAgain] = useState(0)
  useEffect(
    () =>
      gallery.follow(camera, (frame) => {
        const first = kept.current?.frame === null
        kept.current = { frame, results: withResult(kept.current?.results ?? [], frame.header, Date.now()) }
        if (first) drawAgain(1)
      }),
    [gallery, camera],
  )
  return kept.current ?? { frame: null, results: [] }
}

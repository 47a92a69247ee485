// The page that makes this phone or laptop a camera: its picture, what is found in it, how it does.

import connectionStyles from '../ui/ConnectionStatus.module.css'
import frame from '../ui/frame.module.css'
import styles from './CameraPage.module.css'

import { useEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks'

import { classes } from '../ui/classes'
import { request } from '../api/api'
import { Command } from '../ui/Command'
import { Logo } from '../ui/icons'
import { ThemeButton } from '../ui/ThemeButton'
import type { Connection } from '../api/socket'
import { Choices } from './Choices'
import { obstacle, surroundings, type CameraError } from './device'
import { Figures } from './Figures'
import { Overlay } from './overlay'
import { PairingCode, usePairing } from './Pairing'
import { remember, remembered, type Chosen } from './settings'
import { CaptureController, type CaptureState } from './captureController'

/** How often the figures are drawn again. */
const REFRESH_MS = 250

export function CameraPage() {
  const [chosen, setChosen] = useState<Chosen>(() => remembered(location.search, Math.random()))
  const inTheWay = useMemo(() => obstacle(surroundings()), [])
  const video = useRef<HTMLVideoElement>(null)
  const canvas = useRef<HTMLCanvasElement>(null)
  const controller = useController(video, canvas)
  const others = useOthers()

  const state = controller?.state ?? 'stopped'
  const pairing = usePairing(state === 'stopped', controller?.needsCode ?? false)
  const status = controller?.status() ?? null
  const error = inTheWay ?? controller?.error ?? null
  const start = async () => {
    remember(chosen)
    if (await pairing.pair(chosen.name)) await controller?.start(chosen)
  }
  return (
    <div class={`${frame.page} ${styles.page}`}>
      <a class={frame.skipLink} href="#main">Skip to the content</a>
      <header class={frame.top}>
        <h1><Logo /> Browser camera</h1>
        <nav class={frame.pages} aria-label="Pages"><a href="./">All cameras</a></nav>
        <StatePill state={state} phase={status?.phase ?? null} />
        <ThemeButton />
      </header>
      <main id="main" class={styles.main} tabIndex={-1}>
        <div class={classes(styles.viewfinder, controller?.mirrored && styles.mirrored)} style={shapeOf(video.current)}>
          <video ref={video} muted playsInline aria-label="What this camera sees" />
          <canvas ref={canvas} data-testid="overlay" aria-hidden="true" />
          {state === 'stopped' && <p class={styles.viewfinderNote}>{error ? error.title : 'The camera is off'}</p>}
          {state === 'opening' && <p class={styles.viewfinderNote}>Waiting for the camera… Allow it if you are asked.</p>}
        </div>
        <div class={styles.panel}>
          {controller?.note && <p class={`card ${styles.note}`} role="alert" data-testid="note">{controller.note}</p>}
          {error && <ErrorCard error={error} />}
          {state === 'stopped' && !inTheWay && <PairingCode pairing={pairing} />}
          {state === 'stopped' && !inTheWay && <Choices chosen={chosen} onChange={setChosen} onStart={() => void start()} others={others} />}
          {(state === 'running' || state === 'stopping') && (
            <button type="button" class={`${styles.mainAction} ${styles.stop}`} disabled={state === 'stopping'} onClick={() => void controller?.stop()}>
              {state === 'stopping' ? 'Waiting for the last answers…' : `Stop ${chosen.name}`}
            </button>
          )}
          {status && <Figures status={status} name={chosen.name} onRetry={controller?.retryNow} />}
        </div>
      </main>
    </div>
  )
}

/** The picture's own shape, once there is one. */
function shapeOf(video: HTMLVideoElement | null): { aspectRatio?: string } {
  return video?.srcObject && video.videoWidth ? { aspectRatio: `${video.videoWidth} / ${video.videoHeight}` } : {}
}

function StatePill({ state, phase }: { state: CaptureState; phase: string | null }) {
  const [word, kind]: [word: string, kind: 'off' | Connection['phase']] =
    state === 'stopped' ? ['Off', 'off']
    : state === 'running' && phase === 'live' ? ['Live', 'live']
    : state === 'running' && phase === 'waiting' ? ['No connection', 'lost']
    : state === 'stopping' ? ['Stopping', 'connecting']
    : ['Connecting', 'connecting']
  return (
    <p class={classes(connectionStyles.pill, connectionStyles[kind])} role="status" aria-live="polite" data-testid="state">
      <span class={classes(connectionStyles.dot, (kind === 'connecting' || kind === 'lost') && 'pulsing')} aria-hidden="true" />
      {word}
    </p>
  )
}

function ErrorCard({ error: { title, text, ways } }: { error: CameraError }) {
  return (
    <section class={`card ${styles.error}`} role="alert" data-testid="error">
      <h2>{title}</h2>
      <p>{text}</p>
      {ways.length > 0 && (
        <ol>
          {ways.map((way) => (
            <li key={way.text}>
              {way.text}
              {way.code && <Command text={way.code} class={styles.command} />}
            </li>
          ))}
        </ol>
      )}
    </section>
  )
}

/** The controller of this page; draws again when something changes, and often enough for the figures. */
function useController(video: { current: HTMLVideoElement | null }, canvas: { current: HTMLCanvasElement | null }): CaptureController | null {
  const [, redraw] = useReducer<number, void>((count) => count + 1, 0)
  const [controller, setController] = useState<CaptureController | null>(null)
  // biome-ignore lint/correctness/useExhaustiveDependencies: both elements stay as long as the page
  useEffect(() => {
    if (!video.current || !canvas.current) return
    const overlay = new Overlay(canvas.current)
    const made = new CaptureController(video.current, overlay, () => redraw())
    setController(made)
    const timer = window.setInterval(() => made.state !== 'stopped' && redraw(), REFRESH_MS)
    return () => {
      window.clearInterval(timer)
      made.dispose()
      overlay.dispose()
    }
  }, [])
  return controller
}

export interface Others {
  /** Names of cameras that are connected now. */
  names: readonly string[]
  apps: readonly string[]
  /** Uplinks that cameras have named; those that the box found by itself have no name to give. */
  sites: readonly string[]
  /** Models that it may choose; empty: not known. */
  families: readonly string[]
}

/** What other cameras there are, asked once: for suggestions, which nobody misses if the box does not answer. */
function useOthers(): Others {
  const [others, setOthers] = useState<Others>({ names: [], apps: [], sites: [], families: [] })
  useEffect(() => {
    request('GET /v1/state').then(
      ({ cameras }) =>
        setOthers((before) => ({
          ...before,
          names: cameras.filter(({ connected }) => connected).map(({ id }) => id),
          apps: [...new Set(['default', ...cameras.map(({ app }) => app)])],
          sites: [...new Set(cameras.flatMap(({ site }) => (site && !site.inferred ? site.name : [])))],
        })),
      () => {},
    )
    request('GET /v1/models').then(
      ({ families }) => setOthers((before) => ({ ...before, families: families.map(({ name }) => name) })),
      () => {},
    )
  }, [])
  return others
}

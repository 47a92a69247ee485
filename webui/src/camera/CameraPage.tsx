// The page that makes this phone or laptop a camera: its picture, what is found in it, how it does.

import connectionStyles from '../components/ConnectionStatus.module.css'
import frame from '../components/frame.module.css'
import styles from './CameraPage.module.css'

import { useEffect, useMemo, useReducer, useRef, useState } from 'preact/hooks'

import { classes } from '../components/classes'
import { ask } from '../api'
import { Command } from '../components/Command'
import { Logo } from '../components/icons'
import { ThemeButton } from '../components/ThemeButton'
import type { Connection } from '../socket'
import type { BoxState } from '../types'
import { Choices } from './Choices'
import { obstacle, surroundings, type Trouble } from './device'
import { Figures } from './Figures'
import { Overlay } from './overlay'
import { remember, remembered, type Chosen } from './settings'
import { Station, type Stage } from './station'

/** How often the figures are drawn anew. */
const REFRESH_MS = 250

export function CameraPage() {
  const [chosen, choose] = useState<Chosen>(() => remembered(location.search, Math.random()))
  const inTheWay = useMemo(() => obstacle(surroundings()), [])
  const video = useRef<HTMLVideoElement>(null)
  const canvas = useRef<HTMLCanvasElement>(null)
  const station = useStation(video, canvas)
  const others = useOthers()

  const stage = station?.stage ?? 'stopped'
  const status = station?.status() ?? null
  const trouble = inTheWay ?? station?.trouble ?? null
  const start = () => {
    remember(chosen)
    void station?.start(chosen)
  }
  return (
    <div class={`${frame.page} ${styles.page}`}>
      <a class={frame.skipLink} href="#main">Skip to the content</a>
      <header class={frame.top}>
        <h1><Logo /> Browser camera</h1>
        <nav class={frame.pages} aria-label="Pages"><a href="./">All cameras</a></nav>
        <StagePill stage={stage} phase={status?.phase ?? null} />
        <ThemeButton />
      </header>
      <main id="main" class={styles.main} tabIndex={-1}>
        <div class={classes(styles.viewfinder, station?.mirrored && styles.mirrored)} style={shapeOf(video.current)}>
          <video ref={video} muted playsInline aria-label="What this camera sees" />
          <canvas ref={canvas} data-testid="overlay" aria-hidden="true" />
          {stage === 'stopped' && <p class={styles.viewfinderNote}>{trouble ? trouble.title : 'The camera is off'}</p>}
          {stage === 'opening' && <p class={styles.viewfinderNote}>Waiting for the camera… Allow it if you are asked.</p>}
        </div>
        <div class={styles.panel}>
          {station?.note && <p class={`card ${styles.note}`} role="alert" data-testid="note">{station.note}</p>}
          {trouble && <TroubleCard trouble={trouble} />}
          {stage === 'stopped' && !inTheWay && <Choices chosen={chosen} onChange={choose} onStart={start} others={others} />}
          {(stage === 'running' || stage === 'stopping') && (
            <button type="button" class={`${styles.mainAction} ${styles.stop}`} disabled={stage === 'stopping'} onClick={() => void station?.stop()}>
              {stage === 'stopping' ? 'Waiting for the last answers…' : `Stop ${chosen.name}`}
            </button>
          )}
          {status && <Figures status={status} name={chosen.name} onRetry={station?.retryNow} />}
        </div>
      </main>
    </div>
  )
}

/** The picture's own shape, once there is one. */
function shapeOf(video: HTMLVideoElement | null): { aspectRatio?: string } {
  return video?.srcObject && video.videoWidth ? { aspectRatio: `${video.videoWidth} / ${video.videoHeight}` } : {}
}

function StagePill({ stage, phase }: { stage: Stage; phase: string | null }) {
  const [word, kind]: [word: string, kind: 'off' | Connection['phase']] =
    stage === 'stopped' ? ['Off', 'off']
    : stage === 'running' && phase === 'live' ? ['Live', 'live']
    : stage === 'running' && phase === 'waiting' ? ['No connection', 'lost']
    : stage === 'stopping' ? ['Stopping', 'connecting']
    : ['Connecting', 'connecting']
  return (
    <p class={classes(connectionStyles.pill, connectionStyles[kind])} role="status" aria-live="polite" data-testid="stage">
      <span class={classes(connectionStyles.dot, (kind === 'connecting' || kind === 'lost') && 'pulsing')} aria-hidden="true" />
      {word}
    </p>
  )
}

function TroubleCard({ trouble: { title, text, ways } }: { trouble: Trouble }) {
  return (
    <section class={`card ${styles.error}`} role="alert" data-testid="trouble">
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

/** The station of this page; draws anew when something changes, and often enough for the figures. */
function useStation(video: { current: HTMLVideoElement | null }, canvas: { current: HTMLCanvasElement | null }): Station | null {
  const [, redraw] = useReducer<number, void>((count) => count + 1, 0)
  const [station, setStation] = useState<Station | null>(null)
  useEffect(() => {
    if (!video.current || !canvas.current) return
    const overlay = new Overlay(canvas.current)
    const made = new Station(video.current, overlay, () => redraw())
    setStation(made)
    const timer = window.setInterval(() => made.stage !== 'stopped' && redraw(), REFRESH_MS)
    return () => {
      window.clearInterval(timer)
      made.dispose()
      overlay.dispose()
    }
  }, [])
  return station
}

export interface Others {
  /** Names of cameras that are connected now. */
  names: readonly string[]
  apps: readonly string[]
}

/** What other cameras there are, asked once: for suggestions, which nobody misses if the box does not answer. */
function useOthers(): Others {
  const [others, setOthers] = useState<Others>({ names: [], apps: [] })
  useEffect(() => {
    ask<BoxState>('v1/state').then(
      ({ cameras }) =>
        setOthers({
          names: cameras.filter(({ connected }) => connected).map(({ id }) => id),
          apps: [...new Set(['default', ...cameras.map(({ app }) => app)])],
        }),
      () => {},
    )
  }, [])
  return others
}

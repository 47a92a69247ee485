// One camera: its picture and how it is doing; enlarged, also why the box treats it as it does.

import styles from './CameraTile.module.css'

import { useEffect, useRef } from 'preact/hooks'

import { bitrate, isKnown, milliseconds, percent, rate, frameRate } from '../ui/format'
import type { FrameDispatcher } from '../live/frameDispatcher'
import { HEALTH_WORD, missText } from '../figures/health'
import { hashOf } from '../app/route'
import type { Camera } from '../api/types'
import { classes } from '../ui/classes'
import { Decision } from '../figures/Decision'
import { FrameCounts } from '../figures/FrameCounts'
import { Headline } from '../figures/Headline'
import { EnlargeIcon, HealthIcon, ShrinkIcon } from '../ui/icons'
import { LatencyBars } from '../figures/LatencyBars'
import { LinkChart } from './LinkChart'
import { Picture } from '../live/Picture'
import { Remedies } from '../figures/Remedies'
import { SyntheticMark } from '../models/SyntheticHint'

export interface CameraTileProps {
  camera: Camera
  window_s: number
  dispatcher: FrameDispatcher
  enlarged: boolean
  /** Whether the box fetches its pictures: over no uplink that it could know. */
  fetched?: boolean
  /** Whether no model of the box is for real cameras. */
  synthetic?: boolean
  /** Enlarge or shrink it; undefined: it is large because it is alone, and stays so. */
  onToggle: (() => void) | undefined
}

export function CameraTile({ camera, window_s, dispatcher, enlarged, fetched = false, synthetic = false, onToggle }: CameraTileProps) {
  const health = camera.grade
  const isTroubled = health === 'failing' || health === 'strained' || health === 'lost'
  const tile = useRef<HTMLElement>(null)
  /** Whether a person enlarged it: one that is large because it is alone stays below the verdict. */
  const byHand = useRef(false)
  const toggle = onToggle && (() => {
    byHand.current = true
    onToggle()
  })
  useEffect(() => {
    if (enlarged && byHand.current) tile.current?.scrollIntoView({ block: 'start' })
  }, [enlarged])
  return (
    <article
      ref={tile}
      class={classes('card', `health-${health}`, styles.tile, enlarged && styles.enlarged)}
      data-testid="camera-tile"
      data-camera={camera.id}
      data-health={health}
      aria-label={`Camera ${camera.id}, ${HEALTH_WORD[health]}`}
    >
      <Picture class={styles.picture} camera={camera} dispatcher={dispatcher} onToggle={toggle} />
      <header>
        <span class={styles.health}><HealthIcon health={health} /></span>
        <h2><a href={hashOf({ page: 'camera', camera: camera.id })}>{camera.id}</a></h2>
        <p class={classes(isTroubled && styles.troubled)} title={camera.advice?.reason}><Status camera={camera} /></p>
        {synthetic && <span class={styles.roomy}><SyntheticMark /></span>}
        {toggle && (
          <button
            type="button"
            class="quiet"
            onClick={toggle}
            aria-expanded={enlarged}
            aria-label={`${enlarged ? 'Less of' : 'More of'} ${camera.id}`}
          >
            {enlarged ? <ShrinkIcon /> : <EnlargeIcon />}
          </button>
        )}
      </header>
      {isTroubled && !enlarged && (
        <div class={styles.why}>{health === 'lost' ? <Remedies camera={camera.id} remedies={camera.remedies} lead="To do: " /> : missText(camera)}</div>
      )}
      {enlarged && (
        <div class={styles.figures}>
          <p class="muted">{origin(camera)}</p>
          <Headline camera={camera} window_s={window_s} />
          <Decision camera={camera} reason="whole" />
          <LatencyBars camera={camera} window_s={window_s} fetched={fetched} />
          {!fetched && <LinkSection camera={camera} window_s={window_s} enlarged={enlarged} />}
          <FrameCounts camera={camera} window_s={window_s} />
        </div>
      )}
    </article>
  )
}

/** How it is doing; on a small tile the figure alone. */
function Status({ camera }: { camera: Camera }) {
  switch (camera.grade) {
    case 'failing':
    case 'strained':
      return <>{percent(camera.on_time_share, 0)}<span class={styles.roomy}> on time</span></>
    case 'lost':
      return <>{HEALTH_WORD.lost}</>
    case 'reduced':
      return <>{rate(camera.advice?.rate_hz)} of {frameRate(camera.rate_hz)}<span class={styles.roomy}>, as planned</span></>
    default:
      return <span class={styles.roomy}>{frameRate(camera.fps)}</span>
  }
}

export function origin(camera: Camera): string {
  const app = camera.app === 'default' ? null : camera.app
  return [app, camera.address, camera.site && `${camera.site.inferred ? 'shared uplink' : 'site'} ${camera.site.name}`].filter(Boolean).join(' · ')
}

function LinkSection({ camera, window_s, enlarged }: Pick<CameraTileProps, 'camera' | 'window_s' | 'enlarged'>) {
  const bandwidth_bps = camera.link?.bandwidth_bps
  const clock = camera.link?.clock_error_ms
  return (
    <section>
      <h3>
        Link <span class={styles.bandwidthKey} aria-hidden="true" />
        <span class="muted">Mbit/s</span>
        <span class={`${styles.bandwidthKey} ${styles.sizeKey}`} aria-hidden="true" />
        <span class="muted">size, px</span>
        <span class={styles.now} title={isKnown(clock) ? `Round trip time. The camera's clock is known within ${milliseconds(clock)}` : undefined}>
          {bitrate(bandwidth_bps)} · RTT {milliseconds(camera.link?.rtt_ms)}
        </span>
      </h3>
      <LinkChart
        bandwidth={camera.link?.history ?? []}
        sizes={camera.variant_history}
        window_s={window_s}
        height={enlarged ? 150 : 76}
        label={`Link of ${camera.id} over the last ${window_s} s, now ${bitrate(bandwidth_bps)}`}
      />
    </section>
  )
}


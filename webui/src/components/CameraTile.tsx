// One camera: its picture, how it is doing, and why the box treats it as it does.

import { useEffect, useRef } from 'preact/hooks'

import { dropLines } from '../counts'
import { bitrate, clockTime, count, isKnown, milliseconds, percent, rate } from '../format'
import type { Gallery } from '../gallery'
import { cameraHealth, HEALTH_WORD } from '../health'
import { hashOf } from '../route'
import type { ByReason, Camera } from '../types'
import { CountsLine } from './CountsLine'
import { EnlargeIcon, HealthIcon, ShrinkIcon } from './icons'
import { LatencyBars } from './LatencyBars'
import { LinkChart } from './LinkChart'
import { useLivePicture } from './useLivePicture'

export interface CameraTileProps {
  camera: Camera
  window_s: number
  gallery: Gallery
  enlarged: boolean
  onToggle: () => void
}

export function CameraTile({ camera, window_s, gallery, enlarged, onToggle }: CameraTileProps) {
  const health = cameraHealth(camera)
  const tile = useRef<HTMLElement>(null)
  useEffect(() => {
    if (enlarged) tile.current?.scrollIntoView({ block: 'start' })
  }, [enlarged])
  return (
    <article
      ref={tile}
      class={`tile card health-${health} ${enlarged ? 'enlarged' : ''}`}
      data-testid="camera-tile"
      data-camera={camera.id}
      data-health={health}
      aria-label={`Camera ${camera.id}, ${HEALTH_WORD[health]}`}
    >
      <header>
        <span class="tile-health"><HealthIcon health={health} /></span>
        <h2><a href={hashOf({ place: 'camera', camera: camera.id })}>{camera.id}</a></h2>
        <p class="muted">{origin(camera)}</p>
        <button
          type="button"
          class="quiet"
          onClick={onToggle}
          aria-expanded={enlarged}
          aria-label={`${enlarged ? 'Shrink' : 'Enlarge'} ${camera.id}`}
        >
          {enlarged ? <ShrinkIcon /> : <EnlargeIcon />}
        </button>
      </header>
      <Picture camera={camera} window_s={window_s} gallery={gallery} onToggle={onToggle} />
      <div class="tile-figures">
        <Headline camera={camera} window_s={window_s} />
        <Decision camera={camera} />
        <LatencyBars camera={camera} window_s={window_s} />
        <LinkSection camera={camera} window_s={window_s} enlarged={enlarged} />
        <Ledger camera={camera} window_s={window_s} />
      </div>
    </article>
  )
}

export function Headline({ camera, window_s }: Pick<CameraTileProps, 'camera' | 'window_s'>) {
  return (
    <div class="headline">
      <p class="on-time">
        <span class="big" data-testid="on-time">{percent(camera.on_time_share)}</span>
        <span class="health-word">{HEALTH_WORD[cameraHealth(camera)]}</span>
        <span class="muted">on time, last {window_s} s</span>
      </p>
      <p class="fps" title={`Frames answered in a second, of ${rate(camera.rate_hz)} the camera would like, last ${window_s} s`}>
        <span class="big" data-testid="fps">{rate(camera.fps)}</span>
        <span>fps</span>
        <span class="muted">of {rate(camera.rate_hz)}</span>
      </p>
    </div>
  )
}

export function origin(camera: Camera): string {
  const app = camera.app === 'default' ? null : camera.app
  return [app, camera.address, camera.site && `${camera.site.inferred ? 'shared uplink' : 'site'} ${camera.site.name}`].filter(Boolean).join(' · ')
}

/** The picture; a click enlarges, as the button in the header does for the keyboard. */
export function Picture({ camera, window_s, gallery, onToggle }: Omit<CameraTileProps, 'enlarged' | 'onToggle'> & { onToggle?: () => void }) {
  const { canvas, caption } = useLivePicture(gallery, camera.id)
  return (
    <div class="picture" onClick={onToggle}>
      <canvas
        ref={canvas}
        role="img"
        aria-label={`Live picture of ${camera.id}`}
        data-frames="0"
        data-boxes="0"
      />
      <p ref={caption} class="caption" aria-hidden="true" hidden />
      {!camera.connected && (
        <p class="picture-note">Disconnected{camera.left ? ` at ${clockTime(camera.left.at_ms)}: ${camera.left.why}` : ''}</p>
      )}
      {cameraHealth(camera) === 'waiting' && (
        <p class="picture-note">
          {camera.counts.captured === 0 ? 'Waiting for its first frame' : `No frames in the last ${window_s} s`}
        </p>
      )}
    </div>
  )
}

export function Decision({ camera }: { camera: Camera }) {
  const { advice } = camera
  return (
    <section class="decision">
      <h3 class="visually-hidden">What the box decided</h3>
      <p class="variant">
        <strong data-testid="variant">{advice?.variant ?? 'no variant yet'}</strong>
        {advice && (
          <span class="muted">
            {advice.width_px} × {advice.height_px} px · {rate(advice.rate_hz)} Hz · quality {advice.quality}
          </span>
        )}
      </p>
      <p class="reason" data-testid="reason" title={advice?.reason}>{advice?.reason ?? ''}</p>
    </section>
  )
}

function LinkSection({ camera, window_s, enlarged }: Pick<CameraTileProps, 'camera' | 'window_s' | 'enlarged'>) {
  const bandwidth_bps = camera.link?.bandwidth_bps
  const clock = camera.link?.clock_error_ms
  return (
    <section class="link">
      <h3>
        Link <span class="key-line key-link" aria-hidden="true" />
        <span class="muted">Mbit/s</span>
        <span class="key-line key-size" aria-hidden="true" />
        <span class="muted">size, px</span>
        <span class="link-now" title={isKnown(clock) ? `Round trip time. The camera's clock is known within ${milliseconds(clock)}` : undefined}>
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

export function Ledger({ camera, window_s }: Pick<CameraTileProps, 'camera' | 'window_s'>) {
  return (
    <section class="ledger">
      <h3>Frames <span class="muted">since the box started</span></h3>
      <CountsLine counts={camera.counts} />
      <Drops title="Dropped" none="None dropped" dropped={camera.counts.dropped} testid="drops" />
      <Drops
        title={`Last ${window_s} s`}
        none={`None in the last ${window_s} s`}
        dropped={camera.dropped_in_window}
        testid="drops-window"
      />
    </section>
  )
}

interface DropsProps {
  title: string
  none: string
  dropped: ByReason
  testid: string
}

function Drops({ title, none, dropped, testid }: DropsProps) {
  const drops = dropLines(dropped)
  return (
    <ul class="drops" data-testid={testid} aria-label={`${title}: dropped frames by reason`}>
      <li class="muted">{drops.length === 0 ? none : `${title}:`}</li>
      {drops.map(({ reason, amount, meaning }) => (
        <li key={reason} title={`Dropped: ${meaning}`}>{count(amount)} {reason}</li>
      ))}
    </ul>
  )
}

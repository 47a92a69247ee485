// The two figures to look at first: the share of frames answered in time, and answers a second.

import styles from './Headline.module.css'

import { percent, rate } from '../ui/format'
import { HEALTH_WORD } from './health'
import type { Camera } from '../api/types'

export function Headline({ camera, window_s }: { camera: Camera; window_s: number }) {
  return (
    <div class={styles.headline}>
      <p class={styles.onTime}>
        <span class={styles.big} data-testid="on-time">{percent(camera.on_time_share)}</span>
        <span class={styles.healthWord}>{HEALTH_WORD[camera.grade]}</span>
        <span class="muted">on time, last {window_s} s</span>
      </p>
      <p class={styles.fps} title={`Frames answered in a second, of ${rate(camera.rate_hz)} the camera would like, last ${window_s} s`}>
        <span class={styles.big} data-testid="fps">{rate(camera.fps)}</span>
        <span>frames/s</span>
        <span class="muted">of {rate(camera.rate_hz)}</span>
      </p>
    </div>
  )
}

// A camera's live picture, and what stands over it while there is none.

import styles from './Picture.module.css'

import type { ComponentChildren } from 'preact'

import { capitalised, clockTime, duration } from '../ui/format'
import type { FrameDispatcher } from './frameDispatcher'
import { frozenFor_s } from '../figures/health'
import type { Camera } from '../api/types'
import { classes } from '../ui/classes'
import { useLivePicture } from './useLivePicture'
import { Zones } from './Zones'

interface PictureProps {
  camera: Camera
  dispatcher: FrameDispatcher
  onToggle?: (() => void) | undefined
  /** Added to its own class. */
  class?: string | undefined
  /** What lies over it while something is drawn. */
  drawing?: ComponentChildren
}

/** The picture; a click enlarges, as the button in the header does for the keyboard. */
export function Picture({ camera, dispatcher, onToggle, class: added, drawing }: PictureProps) {
  const { canvas, caption } = useLivePicture(dispatcher, camera.id)
  const frozen_s = frozenFor_s(camera)
  const note = noteOf(camera, frozen_s)
  return (
    <div class={classes(styles.picture, added)} data-connected={camera.connected && camera.grade !== 'lost'} data-frozen={frozen_s !== null} onClick={onToggle}>
      <canvas
        ref={canvas}
        role="img"
        aria-label={`Live picture of ${camera.id}`}
        data-frames="0"
        data-boxes="0"
      />
      <Zones camera={camera} />
      {drawing}
      <p ref={caption} class={styles.caption} aria-hidden="true" hidden />
      {note === null ? (
        <p class={classes(styles.note, styles.blank)} aria-hidden="true">No picture yet</p>
      ) : (
        <p class={styles.note} data-testid="picture-note">{note}</p>
      )}
    </div>
  )
}

/** Why there is no picture that moves; null: there is one, or the first is on its way. */
function noteOf(camera: Camera, frozen_s: number | null): string | null {
  switch (camera.grade) {
    case 'lost':
      return capitalised(camera.trouble ?? '')
    case 'gone':
      return `Disconnected${camera.left ? ` at ${clockTime(camera.left.at_ms)}: ${camera.left.why}` : ''}`
    case 'waiting':
      return camera.counts.captured === 0 || frozen_s === null ? 'Waiting for its first frame' : `No frame for ${duration(frozen_s)}`
    default:
      return null
  }
}

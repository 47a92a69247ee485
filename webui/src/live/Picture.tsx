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
      <p class={classes(styles.note, styles.blank)} aria-hidden="true">No picture yet</p>
      {camera.grade === 'lost' ? (
        <p class={styles.note} data-testid="picture-note">{capitalised(camera.trouble ?? '')}</p>
      ) : camera.grade === 'gone' && (
        <p class={styles.note} data-testid="picture-note">Disconnected{camera.left ? ` at ${clockTime(camera.left.at_ms)}: ${camera.left.why}` : ''}</p>
      )}
      {camera.grade === 'waiting' && (
        <p class={styles.note} data-testid="picture-note">
          {camera.counts.captured === 0 || frozen_s === null ? 'Waiting for its first frame' : `No frame for ${duration(frozen_s)}`}
        </p>
      )}
    </div>
  )
}

// The camera's picture, large, and stills of it.

import page from './Camera.module.css'
import styles from './Live.module.css'

import { useState } from 'preact/hooks'

import { messageOf } from '../api/api'
import { download } from '../ui/download'
import type { Gallery } from '../live/frameDispatcher'
import type { ShownFrame } from '../api/messages'
import { fileName } from './results'
import { pictureWithBoxes } from '../live/snapshot'
import type { Camera } from '../api/types'
import { Picture } from '../live/Picture'
import { DownloadIcon } from '../ui/icons'

interface LiveProps {
  camera: Camera
  window_s: number
  gallery: Gallery
  /** The frame on screen; null: none has come. */
  frame: ShownFrame | null
}

export function Live({ camera, window_s, gallery, frame }: LiveProps) {
  const [refusal, refuse] = useState('')
  const still = async (boxes: boolean) => {
    if (!frame) return
    const name = fileName(camera.id, Date.now(), boxes ? '-boxes.jpg' : '.jpg')
    try {
      download(boxes ? await pictureWithBoxes(frame, gallery.labels) : new Blob([frame.jpeg], { type: 'image/jpeg' }), name)
      refuse('')
    } catch (error) {
      refuse(messageOf(error))
    }
  }
  return (
    <section class={`${styles.live} card`} aria-label="Live picture">
      <Picture class={styles.picture} camera={camera} window_s={window_s} gallery={gallery} />
      <div class={`${page.tools} ${styles.tools}`}>
        <button type="button" disabled={!frame} onClick={() => void still(false)}><DownloadIcon /> Snapshot</button>
        <button type="button" disabled={!frame} onClick={() => void still(true)}><DownloadIcon /> Snapshot with boxes</button>
        <span role="status" class="muted">{refusal}</span>
      </div>
    </section>
  )
}

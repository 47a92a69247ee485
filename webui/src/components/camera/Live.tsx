// The camera's picture, large, and stills of it.

import page from '../../pages/Camera.module.css'
import styles from './Live.module.css'

import { useState } from 'preact/hooks'

import { download } from '../../download'
import type { Gallery } from '../../gallery'
import type { ShownFrame } from '../../messages'
import { fileName } from '../../results'
import { pictureWithBoxes } from '../../snapshot'
import type { Camera } from '../../types'
import { Picture } from '../Picture'
import { DownloadIcon } from '../icons'

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
      refuse(error instanceof Error ? error.message : String(error))
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

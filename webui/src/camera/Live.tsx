// The camera's picture, large, and stills of it.

import page from './Camera.module.css'
import styles from './Live.module.css'

import type { ComponentChildren } from 'preact'
import { useState } from 'preact/hooks'

import { messageOf } from '../api/api'
import { download } from '../ui/download'
import type { FrameDispatcher } from '../live/frameDispatcher'
import type { ShownFrame } from '../api/messages'
import { fileName } from './results'
import { pictureWithBoxes } from '../live/snapshot'
import type { Camera } from '../api/types'
import { Picture } from '../live/Picture'
import { DownloadIcon } from '../ui/icons'

interface LiveProps {
  camera: Camera
  dispatcher: FrameDispatcher
  /** The frame on screen; null: none has come. */
  frame: ShownFrame | null
  drawing: ComponentChildren
  /** What is said below the picture of what is drawn on it. */
  drawn: ComponentChildren
}

export function Live({ camera, dispatcher, frame, drawing, drawn }: LiveProps) {
  const [refusal, setRefusal] = useState('')
  const still = async (boxes: boolean) => {
    if (!frame) return
    const name = fileName(camera.id, Date.now(), boxes ? '-boxes.jpg' : '.jpg')
    try {
      download(boxes ? await pictureWithBoxes(frame) : new Blob([frame.jpeg], { type: 'image/jpeg' }), name)
      setRefusal('')
    } catch (error) {
      setRefusal(messageOf(error))
    }
  }
  return (
    <section class={`${styles.live} card`} aria-label="Live picture">
      <Picture class={styles.picture} camera={camera} dispatcher={dispatcher} drawing={drawing} />
      {drawn && <p class={`${page.tools} ${styles.tools}`}>{drawn}</p>}
      <div class={`${page.tools} ${styles.tools}`}>
        <button type="button" disabled={!frame} onClick={() => void still(false)}><DownloadIcon /> Snapshot</button>
        <button type="button" disabled={!frame} onClick={() => void still(true)}><DownloadIcon /> Snapshot with boxes</button>
        <span role="status" class="muted">{refusal}</span>
      </div>
    </section>
  )
}

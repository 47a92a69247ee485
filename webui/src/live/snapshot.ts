// A still of the frame that is shown: the camera's own JPEG, or one with what was found drawn on it.

import type { ShownFrame } from '../api/messages'
import { drawDetections } from './painter'

/** Of full size, though the camera may have sent it smaller: boxes and labels want room. */
export async function pictureWithBoxes({ header, jpeg }: ShownFrame): Promise<Blob> {
  const bitmap = await createImageBitmap(new Blob([jpeg], { type: 'image/jpeg' }))
  const canvas = document.createElement('canvas')
  canvas.width = header.width_px
  canvas.height = header.height_px
  const context = canvas.getContext('2d')
  if (!context) throw new Error('this browser cannot draw')
  const whole = { x: 0, y: 0, width: canvas.width, height: canvas.height }
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height)
  bitmap.close()
  // Labels as large for the picture as they are on a page of ordinary width.
  drawDetections(context, header, whole, Math.max(1, canvas.width / 900))
  return new Promise((resolve, reject) => {
    canvas.toBlob((blob) => (blob ? resolve(blob) : reject(new Error('this browser cannot make a JPEG'))), 'image/jpeg', 0.92)
  })
}

// Owns the way of a frame from the video to JPEG: held where it must wait, scaled here, encoded in a worker.

import type { Encoded, EncodeOrder } from './encoder'
import type { Pictures } from './link'
import type { Send } from './sender'

interface Waiting {
  resolve(jpeg: ArrayBuffer): void
  reject(error: Error): void
}

export class VideoPictures implements Pictures {
  private readonly worker = new Worker(new URL('./encoder.ts', import.meta.url), { type: 'module', name: 'encoder' })
  private readonly waiting = new Map<number, Waiting>()
  /** Only one frame ever waits: the newest. */
  private readonly held = new OffscreenCanvas(1, 1)
  private readonly scaled = new OffscreenCanvas(1, 1)
  private orders = 0

  constructor(private readonly video: HTMLVideoElement) {
    this.worker.onmessage = ({ data }: MessageEvent<Encoded>) => {
      const waiting = this.waiting.get(data.id)
      this.waiting.delete(data.id)
      if ('jpeg' in data) waiting?.resolve(data.jpeg)
      else waiting?.reject(new Error(data.error))
    }
    this.worker.onerror = ({ message }) => this.fail(message || 'the encoder could not be started')
  }

  hold(): void {
    draw(this.video, this.held, this.video.videoWidth, this.video.videoHeight)
  }

  encode(which: 'live' | 'held', { width_px, height_px, quality }: Send): Promise<ArrayBuffer> {
    // Drawn now: a moment later the video shows another frame.
    draw(which === 'live' ? this.video : this.held, this.scaled, width_px, height_px)
    const picture = this.scaled.transferToImageBitmap()
    this.orders += 1
    const order: EncodeOrder = { id: this.orders, picture, quality }
    return new Promise((resolve, reject) => {
      this.waiting.set(order.id, { resolve, reject })
      this.worker.postMessage(order, [picture])
    })
  }

  dispose(): void {
    this.worker.terminate()
    this.waiting.clear()
  }

  private fail(why: string): void {
    for (const { reject } of this.waiting.values()) reject(new Error(why))
    this.waiting.clear()
  }
}

function draw(source: CanvasImageSource, canvas: OffscreenCanvas, width: number, height: number): void {
  canvas.width = width
  canvas.height = height
  const context = canvas.getContext('2d', { alpha: false })
  if (!context) throw new Error('this browser has no canvas to scale pictures on')
  context.imageSmoothingQuality = 'high'
  context.drawImage(source, 0, 0, width, height)
}

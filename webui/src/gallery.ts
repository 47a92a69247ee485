// Which canvas shows which camera. Frames go straight to it, past the component tree: they come ten
// times as often as states.

import type { ShownFrame } from './messages'
import { Painter } from './painter'

export class Gallery {
  private readonly painters = new Map<string, Painter>()
  labels: readonly string[] = []

  constructor() {
    document.addEventListener('visibilitychange', () => {
      for (const painter of this.painters.values()) void painter.pump()
    })
  }

  /** Show a camera's frames on this canvas until the returned function is called. */
  attach(camera: string, canvas: HTMLCanvasElement, caption: HTMLElement): () => void {
    const painter = new Painter(canvas, caption, () => this.labels)
    this.painters.set(camera, painter)
    return () => {
      painter.dispose()
      this.painters.delete(camera)
    }
  }

  /** A camera without a tile is one the next state will bring: its frame is let go. */
  show(frame: ShownFrame): void {
    this.painters.get(frame.header.camera)?.push(frame)
  }
}

// Which canvas shows which camera. Frames go straight to it, past the component tree: they come ten
// times as often as states.

import type { ShownFrame } from './messages'
import { Painter } from './painter'

export class Gallery {
  private readonly painters = new Map<string, Painter>()
  private follower: ((frame: ShownFrame) => void) | null = null
  labels: readonly string[] = []

  /** `watch` asks the box for one camera's frames only, or (null) for all cameras' again. */
  constructor(private readonly watch: (camera: string | null) => void) {
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

  /** Look at one camera closely: `take` gets each of its frames, until the returned function is called. */
  follow(camera: string, take: (frame: ShownFrame) => void): () => void {
    const follower = (frame: ShownFrame) => {
      if (frame.header.camera === camera) take(frame)
    }
    this.follower = follower
    this.watch(camera)
    return () => {
      if (this.follower !== follower) return
      this.follower = null
      this.watch(null)
    }
  }

  /** A camera without a tile is one the next state will bring: its frame is let go. */
  show(frame: ShownFrame): void {
    this.painters.get(frame.header.camera)?.push(frame)
    this.follower?.(frame)
  }
}

// Passes the timeline's updates from the socket to the Scheduler page, and requests them only while that page is shown.

import type { TimelineUpdate } from './timeline'

export class TimelineFeed {
  private listener: ((update: TimelineUpdate) => void) | null = null

  /** `watch` makes the box send updates, or stops it. */
  constructor(private readonly watch: (wanted: boolean) => void) {}

  /** Start listening; the first update covers the last minute. Returns a function that stops it. */
  follow(listener: (update: TimelineUpdate) => void): () => void {
    this.listener = listener
    this.watch(true)
    return () => {
      if (this.listener !== listener) return
      this.listener = null
      this.watch(false)
    }
  }

  take(update: TimelineUpdate): void {
    this.listener?.(update)
  }
}

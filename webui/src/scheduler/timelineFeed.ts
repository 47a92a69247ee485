// Hands the timeline's news from the page's socket to the page that shows it, and only asks for them while it does.

import type { TimelineNews } from './timeline'

export class TimelineFeed {
  private listener: ((news: TimelineNews) => void) | null = null

  /** `watch` asks the box for news, or for no more. */
  constructor(private readonly watch: (wanted: boolean) => void) {}

  /** Listen from now on; the first news go back a minute. Returns what ends it. */
  follow(listener: (news: TimelineNews) => void): () => void {
    this.listener = listener
    this.watch(true)
    return () => {
      if (this.listener !== listener) return
      this.listener = null
      this.watch(false)
    }
  }

  take(news: TimelineNews): void {
    this.listener?.(news)
  }
}

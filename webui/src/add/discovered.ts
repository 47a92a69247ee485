// What cameras that were found in the network offer. Pure.

import type { Answers } from '../api/api-types'

export type FoundCamera = Answers['POST /v1/sources/discover']['cameras'][number]

export interface Login {
  username: string
  password: string
}

/** What goes into the form. */
export interface Streams {
  url: string
  substream_url: string
}

/** The largest stream and the smallest other one; null: the camera names none. */
export function streamsOf({ streams }: FoundCamera): Streams | null {
  const [largest] = streams
  if (!largest) return null
  const smallest = streams.at(-1)
  const smaller = smallest && smallest.width_px < largest.width_px ? smallest.url : ''
  return { url: largest.url, substream_url: smaller }
}

/** "h264 1920 × 1080 px, h264 640 × 360 px". */
export function sizesText({ streams }: FoundCamera): string {
  return streams.map(({ codec, width_px, height_px }) => `${codec} ${width_px} × ${height_px} px`).join(', ')
}

/** A camera's own name as one for the box: "Front door" is front-door; empty: nothing of it can be used. */
export function boxName(name: string): string {
  return name.toLowerCase().replace(/[^a-z0-9._-]+/g, '-').replace(/^-+|-+$/g, '').slice(0, 64)
}

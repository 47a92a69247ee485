// The last results that came to this page, as a program would read them. Pure.

import type { LiveFrameHeader } from '../api/types'

export const KEPT = 50

export interface Result extends LiveFrameHeader {
  /** When it came to this page, Unix milliseconds by the viewer's clock. */
  received_ms: number
}

/** Put a result before the others; the oldest goes where there are too many. */
export function withResult(results: readonly Result[], header: LiveFrameHeader, received_ms: number): Result[] {
  return [{ received_ms, ...header }, ...results.slice(0, KEPT - 1)]
}

export function resultsText(camera: string, results: readonly Result[]): string {
  return JSON.stringify({ camera, results }, null, 1)
}

/** A name for a file of this camera at this moment, fit for any file system. */
export function fileName(camera: string, at_ms: number, ending: string): string {
  const moment = new Date(at_ms).toISOString().replace(/\.\d+Z$/, 'Z').replaceAll(':', '')
  return `${camera.replace(/[^A-Za-z0-9._-]/g, '_')}-${moment}${ending}`
}

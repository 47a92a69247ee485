// Draws a camera's frames on a canvas for as long as it is on the page.

import { useEffect, useRef } from 'preact/hooks'

import type { FrameDispatcher } from './frameDispatcher'

/** Where a camera's frames are to be drawn, and what is said of each. */
export function useLivePicture(dispatcher: FrameDispatcher, camera: string) {
  const canvas = useRef<HTMLCanvasElement>(null)
  const caption = useRef<HTMLParagraphElement>(null)
  useEffect(() => {
    if (canvas.current && caption.current) return dispatcher.attach(camera, canvas.current, caption.current)
    return undefined
  }, [camera, dispatcher])
  return { canvas, caption }
}

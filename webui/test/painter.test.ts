import { expect, test } from 'vitest'

import { drawDetections } from '../src/live/painter'
import type { LiveFrameHeader } from '../src/api/types'

interface Stroke {
  colour: unknown
  dash: number[]
  box: number[]
}

/** A canvas's context that notes the boxes that are stroked. */
function recorder(): { context: CanvasRenderingContext2D; strokes: Stroke[]; texts: string[] } {
  const strokes: Stroke[] = []
  const texts: string[] = []
  let dash: number[] = []
  const context = {
    canvas: { width: 320, height: 180 },
    strokeStyle: '',
    setLineDash: (now: number[]) => { dash = now },
    strokeRect(...box: number[]) { strokes.push({ colour: this.strokeStyle, dash, box }) },
    fillRect: () => {},
    fillText: (text: string) => { texts.push(text) },
    measureText: () => ({ width: 20 }),
  }
  return { context: context as unknown as CanvasRenderingContext2D, strokes, texts }
}

test('a label that would cover another one is left out', () => {
  const header: LiveFrameHeader = {
    camera: 'gate', frame: 1, width_px: 640, height_px: 360, variant: 'street-256', outcome: 'on_time', total_ms: 30,
    detections: [
      { label: 'car', label_id: 0, score: 0.8, box: [80, 40, 400, 200] },
      { label: 'truck', label_id: 2, score: 0.7, box: [84, 42, 404, 204] },
      { label: 'person', label_id: 1, score: 0.6, box: [500, 40, 600, 200] },
    ],
  }
  const { context, strokes, texts } = recorder()
  drawDetections(context, header, { x: 0, y: 0, width: 320, height: 180 }, 1)
  expect(strokes).toHaveLength(6)
  expect(texts).toEqual(['car 80\u202f%', 'person 60\u202f%'])
})

test('what a later stage found is drawn where it lies, last, dashed and in white', () => {
  const plate = { label: 'plate', score: 0.91, box: [100, 100, 300, 140] as const }
  const header: LiveFrameHeader = {
    camera: 'gate', frame: 1, width_px: 640, height_px: 360, variant: 'street-256', outcome: 'on_time', total_ms: 30,
    detections: [
      { label: 'car', label_id: 0, score: 0.8, box: [80, 40, 400, 200], stages: { plate: { variant: 'plates-96', detections: [plate] } } },
      { label: 'person', label_id: 1, score: 0.6, box: [500, 40, 600, 200] },
    ],
  }
  const { context, strokes, texts } = recorder()
  drawDetections(context, header, { x: 0, y: 0, width: 320, height: 180 }, 1)
  // Each box has a dark rim below it.
  const [car, person, found] = [strokes[1], strokes[3], strokes[5]]
  expect(strokes).toHaveLength(6)
  expect([car?.dash, person?.dash]).toEqual([[], []])
  expect(car?.colour).not.toBe('#ffffff')
  expect(found).toEqual({ colour: '#ffffff', dash: [5, 3], box: [50, 50, 100, 20] })
  expect(texts).toEqual(['car 80\u202f%', 'person 60\u202f%', 'plate 91\u202f%'])
})

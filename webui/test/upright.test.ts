import { expect, test } from 'vitest'

import { orientationOf } from '../src/models/upright'

/** The beginning of a JPEG whose EXIF has an orientation behind another entry. */
function jpeg(orientation: number, little: boolean): DataView {
  const view = new DataView(new ArrayBuffer(64))
  view.setUint32(0, 0xffd8ffe0)
  view.setUint16(4, 4) // an APP0 of four bytes
  view.setUint16(8, 0xffe1)
  view.setUint16(10, 46)
  view.setUint32(12, 0x45786966)
  const tiff = 18
  view.setUint16(tiff, little ? 0x4949 : 0x4d4d)
  view.setUint16(tiff + 2, 42, little)
  view.setUint32(tiff + 4, 8, little)
  view.setUint16(tiff + 8, 2, little)
  view.setUint16(tiff + 10, 0x0110, little)
  view.setUint16(tiff + 22, 0x0112, little)
  view.setUint16(tiff + 24, 3, little)
  view.setUint32(tiff + 26, 1, little)
  view.setUint16(tiff + 30, orientation, little)
  return view
}

test.each([true, false])('how a photo is to be turned is read in both orders of bytes (%s)', (little) => {
  expect([1, 3, 6, 8].map((each) => orientationOf(jpeg(each, little)))).toEqual([1, 3, 6, 8])
})

test('what says nothing that can be read is not turned', () => {
  expect(orientationOf(jpeg(9, true))).toBe(1)
  const whole = new Uint8Array(jpeg(6, true).buffer)
  for (let length = 0; length < 50; length += 1) expect(orientationOf(new DataView(whole.slice(0, length).buffer))).toBe(1)
  expect(orientationOf(new DataView(new TextEncoder().encode('\u0089PNG, no JPEG').buffer))).toBe(1)
})

// A photo as the box is to see it. Phones store portraits lying, with a note (EXIF) that says how to turn them: browsers
// obey it, and the box looks at the pixels as they are.

export interface Photo {
  /** What is sent. */
  body: Blob
  /** The same picture, to be drawn. */
  bitmap: ImageBitmap
}

/** The note is in one of the first segments, of which none is longer than 64 KiB. */
const HEAD_BYTES = 1 << 18

/** Turn a photo that is to be shown turned; any other picture stays as it is. */
export async function upright(picture: Blob): Promise<Photo> {
  const head = new DataView(await picture.slice(0, HEAD_BYTES).arrayBuffer())
  const bitmap = await createImageBitmap(picture)
  if (orientationOf(head) === 1) return { body: picture, bitmap }
  const canvas = document.createElement('canvas')
  canvas.width = bitmap.width
  canvas.height = bitmap.height
  canvas.getContext('2d')?.drawImage(bitmap, 0, 0)
  const body = await new Promise<Blob | null>((resolve) => canvas.toBlob(resolve, 'image/jpeg', 0.95))
  if (!body) throw new Error('this browser cannot turn the picture')
  return { body, bitmap }
}

/** How a JPEG is to be turned, 2 to 8 as in EXIF; 1: not at all, or nothing that can be read says so. Pure. */
export function orientationOf(jpeg: DataView): number {
  try {
    if (jpeg.getUint16(0) !== 0xffd8) return 1
    for (let at = 2; jpeg.getUint8(at) === 0xff && jpeg.getUint8(at + 1) !== 0xda; at += 2 + jpeg.getUint16(at + 2)) {
      const isExif = jpeg.getUint8(at + 1) === 0xe1 && jpeg.getUint32(at + 4) === 0x45786966
      if (isExif) return orientationIn(jpeg, at + 10)
    }
  } catch {
    // It ends before it says anything: the box refuses what is no JPEG.
  }
  return 1
}

/** What the first directory of a TIFF that begins here says. */
function orientationIn(jpeg: DataView, start: number): number {
  const little = jpeg.getUint16(start) === 0x4949
  const directory = start + jpeg.getUint32(start + 4, little)
  for (let entry = 0; entry < jpeg.getUint16(directory, little); entry += 1) {
    const at = directory + 2 + 12 * entry
    if (jpeg.getUint16(at, little) !== 0x0112) continue
    const orientation = jpeg.getUint16(at + 8, little)
    return orientation >= 1 && orientation <= 8 ? orientation : 1
  }
  return 1
}

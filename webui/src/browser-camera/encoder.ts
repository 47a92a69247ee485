// A worker that turns pictures into JPEG: there, the browser encodes at once, and the page stays smooth.

export interface EncodeOrder {
  id: number
  picture: ImageBitmap
  /** 1 to 100. */
  quality: number
}

export type Encoded = { id: number; jpeg: ArrayBuffer } | { id: number; error: string }

const canvas = new OffscreenCanvas(1, 1)
// Read back for every picture: kept where the encoder reads it.
const context = canvas.getContext('2d', { willReadFrequently: true, alpha: false })

async function encoded({ id, picture, quality }: EncodeOrder): Promise<Encoded> {
  try {
    if (!context) throw new Error('this browser gives a worker no canvas')
    canvas.width = picture.width
    canvas.height = picture.height
    context.drawImage(picture, 0, 0)
    const blob = await canvas.convertToBlob({ type: 'image/jpeg', quality: quality / 100 })
    return { id, jpeg: await blob.arrayBuffer() }
  } catch (error) {
    return { id, error: String(error) }
  } finally {
    picture.close()
  }
}

// One after the other: they share the canvas, and frames leave in order.
let before: Promise<unknown> = Promise.resolve()
self.onmessage = ({ data }: MessageEvent<EncodeOrder>) => {
  before = before.then(async () => {
    const answer = await encoded(data)
    self.postMessage(answer, { transfer: 'jpeg' in answer ? [answer.jpeg] : [] })
  })
}

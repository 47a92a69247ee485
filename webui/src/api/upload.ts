// Sends a file to the box and tells how far it is: fetch cannot say that of what it sends.

import { ApiError, problemOf } from './api'

/** POST a file as it is; calls `onProgress` with the share that is sent; throws ApiError. */
export function upload(route: string, file: Blob, onProgress: (share: number) => void): Promise<void> {
  return new Promise((resolve, reject) => {
    const request = new XMLHttpRequest()
    request.open('POST', route)
    request.setRequestHeader('Content-Type', 'application/octet-stream')
    request.upload.onprogress = ({ loaded, total }) => onProgress(total > 0 ? loaded / total : 0)
    request.onerror = () => reject(new ApiError('The box did not take the file: the connection was closed.', 0))
    request.onload = () => {
      if (request.status < 400) resolve()
      else reject(new ApiError(problemOf(request.responseText) ?? `The box answered ${request.status}.`, request.status))
    }
    request.send(file)
  })
}

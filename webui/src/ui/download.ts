// Files made on the page, and texts for the clipboard.

/** Hand a file to the browser's downloads. */
export function download(content: Blob, name: string): void {
  const address = URL.createObjectURL(content)
  const link = document.createElement('a')
  link.href = address
  link.download = name
  link.click()
  // The download has its own hold of the content once it has begun.
  window.setTimeout(() => URL.revokeObjectURL(address), 10_000)
}

/** Copy a text; return whether that worked. `shown`: where it stands on the page. */
export async function copyText(text: string, shown: HTMLElement | null): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text)
    return true
  } catch {
    // Browsers keep the clipboard from pages over http, but let them copy what is selected.
    if (!shown) return false
    window.getSelection()?.selectAllChildren(shown)
    return document.execCommand('copy')
  }
}

// How names are put in order, and shortened. Pure.

/** In the order in which people count: gate-2 before gate-10. */
export const BY_NAME = new Intl.Collator('en', { numeric: true })

/** An execution provider by what tells it from others: "CUDAExecutionProvider" is "CUDA". */
export function providerName(provider: string): string {
  return provider.replace(/ExecutionProvider$/, '')
}

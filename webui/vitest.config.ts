import { defineConfig } from 'vitest/config'

export default defineConfig({
  // The documentation's examples, in tests with a document of their own, too.
  server: { fs: { allow: ['..'] } },
  // Tests read the style sheets' modules as they are, with the names of their classes as written.
  // However busy the machine is, a test that is right passes.
  test: { testTimeout: 120_000, hookTimeout: 120_000, css: { include: /\.module\.css/, modules: { classNameStrategy: 'non-scoped' } } },
})

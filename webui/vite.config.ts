import { defineConfig } from 'vite'

export default defineConfig({
  // Relative addresses, so that the page also works behind a proxy that serves the box under a path.
  base: './',
  build: {
    rolldownOptions: { input: ['index.html', 'camera.html'] },
    outDir: '../edgebox/web/page',
    // The folder lies outside this project, so Vite wants to be told that it may be emptied.
    emptyOutDir: true,
    target: 'es2022',
    reportCompressedSize: true,
    // The favicon and anything small stays a file: a strict content policy need not allow data: addresses.
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
  },
  server: {
    // `npm run dev` shows a box that runs on this machine.
    proxy: { '/v1': { target: 'http://127.0.0.1:8787', ws: true } },
  },
})

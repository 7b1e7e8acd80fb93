import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

export default defineConfig({
  plugins: [react()],
  // The API has to see the host of the page, because it takes no writes from pages of another one.
  server: { proxy: { '/api': { target: `http://127.0.0.1:${process.env.ATOLL_PORT ?? 3000}`, changeOrigin: false } } },
})

import react from '@vitejs/plugin-react'
import { defineConfig } from 'vite'

export default defineConfig({
  plugins: [react()],
  // The page and the API have one origin here as they have when the page is deployed, so the session cookie works.
  server: { proxy: { '/api': 'http://localhost:3000' } },
})

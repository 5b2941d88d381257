/**
 * How the page is built: hashed files and a manifest in jobqueue/static/jobqueue/live/, which the
 * Django view reads. Addresses are relative, so that STATIC_URL may be anything. Nothing is inlined:
 * a strict Content-Security-Policy forbids `data:` and inline code.
 */
import react from "@vitejs/plugin-react";
import { defineConfig } from "vitest/config";

const site = process.env.JOBQUEUE_URL ?? "http://127.0.0.1:8000";
const proxied = { target: site, changeOrigin: true, headers: { origin: site } };

export default defineConfig(({ command }) => ({
  plugins: [react()],
  base: command === "build" ? "./" : "/jobqueue/",
  logLevel: command === "build" ? "warn" : "info",
  build: {
    outDir: "../jobqueue/static/jobqueue/live",
    emptyOutDir: true,
    manifest: "manifest.json",
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    target: "es2022",
    rollupOptions: { input: "src/main.tsx" },
  },
  server: {
    proxy: {
      "/jobqueue/api": proxied,
      "/jobqueue/ws": { ...proxied, ws: true },
      "/admin": proxied,
      "/static": proxied,
    },
  },
  test: { environment: "happy-dom", include: ["src/**/*.test.ts", "src/**/*.test.tsx"] },
}));

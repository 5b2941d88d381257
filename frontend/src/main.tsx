import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Refused } from "./api/client";
import { router } from "./app/router";
import { LiveProvider } from "./live/LiveContext";
import { StatsProvider } from "./live/useStats";
import "./styles/theme.css";
import "./styles/layout.css";
import "./styles/controls.css";
import "./styles/overview.css";
import "./styles/tables.css";
import "./styles/job.css";
import "./styles/dialogs.css";

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      // The status line says what is known of the server; a question is repeated by the interval.
      networkMode: "always",
      retry: (failures, error) => !(error instanceof Refused) && failures < 1,
      refetchOnWindowFocus: false,
      staleTime: 1_000,
    },
    mutations: { networkMode: "always" },
  },
});

const root = document.getElementById("root");
if (root !== null) {
  createRoot(root).render(
    <StrictMode>
      <QueryClientProvider client={queries}>
        <LiveProvider>
          <StatsProvider>
            <RouterProvider router={router} />
          </StatsProvider>
        </LiveProvider>
      </QueryClientProvider>
    </StrictMode>,
  );
}

import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { Router } from "wouter";
import { queryClient } from "./api/query-client.ts";
import { place } from "./app/place.ts";
import { Shell } from "./app/shell.tsx";
import { applyTheme } from "./app/theme.ts";
import { askAroundNavigation, watchBack } from "./parts/leaving.ts";
import "./styles/tokens.css";
import "./styles/base.css";

applyTheme();
watchBack();
const root = document.querySelector("#root");
if (root === null) throw new Error("The page has no place for the console.");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queryClient}>
      <Router base={place.basePath} aroundNav={askAroundNavigation}>
        <Shell />
      </Router>
    </QueryClientProvider>
  </StrictMode>,
);

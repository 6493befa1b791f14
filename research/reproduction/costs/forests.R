# Forests of R's randomForest on the sets of Yang & Bi, in place of scikit-learn's: make study NAME=forests.
#
# They are not scikit-learn's. A node is left whole where none of the drawn features splits it, and trees vote with whole
# classes, so that many indicator columns make many leaves that vote for the larger class.
suppressMessages(library(randomForest))
arguments <- commandArgs(TRUE)
data <- arguments[1]; splits <- as.integer(arguments[2])
files <- c(Cancer = "breast_cancer_wisconsin", CTG = "cardiotocography", Churn = "churn", Default = "credit_default", Bank = "bank_full")
left_out <- list(CTG = c("CLASS", "NSP"), Churn = c("state", "area_code"), Bank = "duration")
grid <- (1:200) / 100

ecc <- function(p, y, under) {
  bin <- pmax(1, findInterval(p, (0:10) / 10, left.open = TRUE))
  size <- tapply(p, bin, length); gap <- tapply(p, bin, mean) - tapply(y, bin, mean)
  sum(size / length(p) * ifelse(gap > 0, gap, -under * gap))
}
stratified <- function(label, share) {
  unlist(lapply(0:1, function(class) { rows <- which(label == class); sample(rows, round(share * length(rows))) }))
}
scaled <- function(p, line) plogis(line[1] * qlogis(p) + line[2])
best <- function(lines, p, y, under) lines[which.min(apply(lines, 1, function(line) ecc(scaled(p, line), y, under))), ]

cat("set,seed,NoCal,IR,TS,PS,CATS,CAPS\n")
for (set in arguments[-(1:2)]) {
  rows <- read.csv(file.path(data, "cost_aware", paste0(files[set], ".csv.gz")), stringsAsFactors = TRUE)
  rows <- rows[, setdiff(names(rows), left_out[[set]])]
  y <- rows$label; X <- model.matrix(label ~ ., rows)[, -1]
  for (seed in seq_len(splits)) {
    set.seed(seed)
    train <- stratified(y, 0.7); fit <- train[stratified(y[train], 5 / 7)]; tune <- setdiff(train, fit)
    says <- function(on, asked) predict(randomForest(X[on, ], factor(y[on]), ntree = 100), X[asked, ], type = "prob")[, 2]
    test <- setdiff(seq_along(y), train)
    p <- says(train, test); rough <- says(fit, tune)
    steps <- isoreg(rough, y[tune])
    isotonic <- approx(sort(rough), steps$yf, p, rule = 2, ties = mean)$y
    temperatures <- cbind(grid, 0); pairs <- cbind(sample(grid, 200, TRUE), sample(grid, 200, TRUE))
    lines <- list(TS = best(temperatures, rough, y[tune], 1), PS = best(pairs, rough, y[tune], 1),
                  CATS = best(temperatures, rough, y[tune], 5), CAPS = best(pairs, rough, y[tune], 5))
    found <- c(ecc(p, y[test], 5), ecc(isotonic, y[test], 5), sapply(lines, function(line) ecc(scaled(p, line), y[test], 5)))
    cat(set, seed, sprintf("%.6g", found), sep = ","); cat("\n"); flush(stdout())
  }
}

# Calibration of the predictions of an R model, through reticulate.
#
#   python -m pip install "calibrant[sklearn,plot,report,files]"
#   RETICULATE_PYTHON=$(which python) Rscript examples/r/calibration.R
#
# reticulate turns vectors into NumPy arrays without loss: doubles stay doubles, logicals become booleans.

library(reticulate)
cb <- import("calibrant")

set.seed(1)
n <- 4000
x <- rnorm(n)
y <- runif(n) < plogis(1.5 * x)
fitted <- glm(y[1:2000] ~ x[1:2000], family = binomial)
p <- plogis(0.4 * (coef(fitted)[1] + coef(fitted)[2] * x))   # shrunk: underconfident
test <- 2001:n

# Large data: R writes Parquet or Arrow files, and Calibrant counts them without loading them into R:
#   arrow::write_parquet(scored, "scored.parquet");  table <- cb$scan("scored.parquet", y = "y", p = "p")
file <- tempfile(fileext = ".csv")
write.csv(data.frame(y = as.integer(y[test]), p = unname(p[test])), file, row.names = FALSE)
table <- cb$scan(file, y = "y", p = "p")
cat("rows counted in a file:", table$size, "\n")

result <- cb$evaluate(y[test], unname(p[test]), n_resamples = 199L)
cat(result$verdict, "|", result$direction, "\n")
metrics <- as.data.frame(result$to_frame("pyarrow")$to_pydict())  # columns of Arrow as a data.frame
cat("ECE in Python:", metrics$value[metrics$metric == "ECE"], "\n")

# The same ECE in R: ten bins of equal width.
bin <- findInterval(p[test], (1:9) / 10)
gap <- tapply(seq_along(test), bin, function(i) abs(sum(p[test][i]) - sum(y[test][i])))
cat("ECE in R:     ", sum(gap) / length(test), "\n")

calibrator <- cb$Platt()$fit(unname(p[1:2000]), y[1:2000])
after <- calibrator(unname(p[test]))
cat("log loss before and after:", cb$log_loss(y[test], unname(p[test])), cb$log_loss(y[test], after), "\n")
